#include "hetero/speed/vendor_peak.hpp"

#include <array>

namespace t3d {
namespace {

/// TFLOP/s; 0 = none. Where a data sheet gives the rate with sparsity only, that is its half.
struct DataSheet {
  std::string_view name;  // what follows may only be an amount and a kind of memory
  double fp32, tf32, fp16, bf16, fp8;
};

// NVIDIA's: "V100 Tensor Core GPU" (2020), "A100 Tensor Core GPU" (2021), "H100 Tensor Core GPU"
// (2023), "H200 Tensor Core GPU" (2024), "GH200 Grace Hopper Superchip" (2023), "L40S" (2023); and
// the tables of the white papers "GA102 GPU Architecture" (2021) and "Ada GPU Architecture" (2022),
// which give the halves with sums in fp32.
constexpr std::array<DataSheet, 14> kSheets{{
    {"Tesla V100-SXM2", 15.7, 0, 125, 0, 0},
    {"Tesla V100-PCIE", 14, 0, 112, 0, 0},
    {"Tesla V100S-PCIE", 16.4, 0, 130, 0, 0},
    {"NVIDIA A100-SXM4", 19.5, 156, 312, 312, 0},
    {"NVIDIA A100-PCIE", 19.5, 156, 312, 312, 0},
    {"NVIDIA A100 80GB PCIe", 19.5, 156, 312, 312, 0},
    {"NVIDIA H100", 67, 494.5, 989.5, 989.5, 1979},  // SXM
    {"NVIDIA H100 PCIe", 51, 378, 756.5, 756.5, 1513},
    {"NVIDIA H100 NVL", 60, 417.5, 835.5, 835.5, 1670.5},
    {"NVIDIA H200", 67, 494.5, 989.5, 989.5, 1979},  // SXM
    {"NVIDIA GH200", 67, 494.5, 989.5, 989.5, 1979},
    {"NVIDIA L40S", 91.6, 183, 362.05, 362.05, 733},
    {"NVIDIA GeForce RTX 3090", 35.6, 35.6, 71, 71, 0},
    {"NVIDIA GeForce RTX 4090", 82.6, 82.6, 165.2, 165.2, 330.3},
}};

bool describes(const DataSheet& sheet, std::string_view device) {
  if (!device.starts_with(sheet.name)) return false;
  device.remove_prefix(sheet.name.size());
  const bool ends = device.empty() || device.front() == ' ' || device.front() == '-';
  return ends && device.find_first_not_of(" -0123456789GBHM") == std::string_view::npos;
}

double rate(const DataSheet& sheet, ComputeType compute) {
  switch (compute) {
    case ComputeType::fp32: return sheet.fp32;
    case ComputeType::tf32: return sheet.tf32;
    case ComputeType::fp16: return sheet.fp16;
    case ComputeType::bf16: return sheet.bf16;
    case ComputeType::fp64: break;
  }
  return 0;
}

}  // namespace

double vendor_peak(std::string_view device, ComputeType compute, MatmulType matmul) {
  for (const DataSheet& sheet : kSheets)
    if (describes(sheet, device))
      return 1e12 * (matmul == MatmulType::fp8 ? sheet.fp8 : rate(sheet, compute));
  return 0;
}

}  // namespace t3d
