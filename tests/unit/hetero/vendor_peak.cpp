// Data sheets are found by the names that drivers give whole GPUs, and by no others.
#include "hetero/speed/vendor_peak.hpp"

#include "support/catch.hpp"

namespace t3d {
namespace {

double peak(const char* name, ComputeType compute = ComputeType::bf16) {
  return vendor_peak(name, compute, MatmulType::compute) / 1e12;
}

}  // namespace

TEST_CASE("peaks by the names that drivers give") {
  CHECK(peak("Tesla V100-SXM2-32GB", ComputeType::fp16) == Approx(125));
  CHECK(peak("Tesla V100-PCIE-16GB", ComputeType::fp16) == Approx(112));
  CHECK(peak("NVIDIA A100-SXM4-40GB") == Approx(312));
  CHECK(peak("NVIDIA A100 80GB PCIe") == Approx(312));
  CHECK(peak("NVIDIA H100 80GB HBM3") == Approx(989.5));
  CHECK(peak("NVIDIA H100 PCIe") == Approx(756.5));
  CHECK(peak("NVIDIA H200") == Approx(989.5));
  CHECK(peak("NVIDIA GH200 480GB") == Approx(989.5));
  CHECK(peak("NVIDIA L40S") == Approx(362.05));
  CHECK(peak("NVIDIA GeForce RTX 3090") == Approx(71));
  CHECK(peak("NVIDIA GeForce RTX 4090") == Approx(165.2));
}

TEST_CASE("peaks by the type of the products") {
  const char* name = "NVIDIA A100-SXM4-80GB";
  CHECK(peak(name, ComputeType::fp32) == Approx(19.5));
  CHECK(peak(name, ComputeType::tf32) == Approx(156));
  CHECK(peak(name, ComputeType::fp64) == 0);
  CHECK(vendor_peak(name, ComputeType::bf16, MatmulType::fp8) == 0);
  CHECK(vendor_peak("NVIDIA H200", ComputeType::bf16, MatmulType::fp8) == Approx(1979e12));
  CHECK(peak("Tesla V100-SXM2-32GB", ComputeType::bf16) == 0);
}

TEST_CASE("parts of GPUs, relatives and other devices are not known") {
  for (const char* name :
       {"NVIDIA H100 80GB HBM3 MIG 1g.10gb", "NVIDIA GeForce RTX 3090 Ti",
        "NVIDIA GeForce RTX 4090 D", "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA H200 NVL",
        "NVIDIA L40", "NVIDIA H20", "Tesla V100", "emulated GPU", "cpu", ""})
    CHECK(peak(name) == 0);
}

}  // namespace t3d
