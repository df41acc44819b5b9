#include "forecast/cluster/cluster_presets.hpp"

#include <algorithm>
#include <optional>

#include "core/error.hpp"
#include "core/levenshtein.hpp"
#include "core/plan.hpp"
#include "forecast/cluster/operator_terms.hpp"
#include "hetero/speed/vendor_peak.hpp"

namespace t3d {
namespace {

/// A node of GPUs. Flops are those of vendor_peak() for `device`; links both ways together. `nics`:
/// InfiniBand adapters for messages of GPUs. SXM boards as in NVIDIA's DGX: one for each A100, H100
/// and H200 (DGX A100 user guide, "8x single-port ConnectX-6"; DGX BasePOD reference architecture,
/// "eight single-port ConnectX-7"), one for two V100 (DGX-1: four for eight). PCIe cards sit in
/// nodes of any make: one. Of memory sheets write GB where the driver counts GiB; with GDDR6 a 16th
/// is taken for error correction.
struct GpuSheet {
  const char *name, *device;
  index_t gpus, nics;
  double memory_gib, memory_gbs, link_gbs;
  const char* source;
};
constexpr std::array<GpuSheet, 7> kGpus{{
    {"v100-32g", "Tesla V100-SXM2-32GB", 4, 2, 32, 900, 300,
     "https://www.nvidia.com/en-us/data-center/v100/"},
    {"a100-40g", "NVIDIA A100-SXM4-40GB", 4, 4, 40, 1555, 600,
     "https://www.nvidia.com/en-us/data-center/a100/"},
    {"a100-80g", "NVIDIA A100-SXM4-80GB", 4, 4, 80, 2039, 600,
     "https://www.nvidia.com/en-us/data-center/a100/"},
    {"h100", "NVIDIA H100 80GB HBM3", 8, 8, 80, 3350, 900,
     "https://www.nvidia.com/en-us/data-center/h100/"},
    {"h100-pcie", "NVIDIA H100 PCIe", 4, 1, 80, 2000, 128,
     "https://www.nvidia.com/en-us/data-center/h100/"},
    {"h200", "NVIDIA H200", 8, 8, 141, 4800, 900, "https://www.nvidia.com/en-us/data-center/h200/"},
    {"l40s", "NVIDIA L40S", 4, 1, 45, 864, 64, "https://www.nvidia.com/en-us/data-center/l40s/"},
}};

/// A network adapter in one direction.
struct NetworkSheet {
  const char* name;
  double gbit;
  bool infiniband;  // else a node has one adapter
  const char* source;
};
constexpr std::array<NetworkSheet, 4> kNetworks{{
    {"ib-edr", 100, true, "https://www.nvidia.com/en-us/networking/infiniband-adapters/"},
    {"ib-hdr", 200, true, "https://www.nvidia.com/en-us/networking/infiniband-adapters/"},
    {"ib-ndr", 400, true, "https://www.nvidia.com/en-us/networking/infiniband-adapters/"},
    {"ethernet-25g", 25, false, "https://standards.ieee.org/ieee/802.3by/6062/"},
}};

/// Data sheets give no latencies; NCCL takes these for a hop of a ring (its src/graph/tuning.cc).
constexpr double kLinkHop = 3.4e-6, kNetworkHop = 9.6e-6;

/// Nothing takes longer to start than it takes to compute or to move its operands.
Fit sheet_fit(OperatorKind kind, double flops, double bytes_per_second, double size) {
  const TableForm form = form_of(kind);
  Fit fit{
      form.computes ? FitForm::max : FitForm::sum, std::vector<double>(form.terms.size(), 0), {}};
  const double element = size / bytes_per_second;
  fit.terms[1] = form.computes ? 1 / flops : 1 / bytes_per_second;
  if (kind == OperatorKind::matmul) std::fill_n(fit.terms.begin() + 2, 3, element);
  if (form.computes && kind != OperatorKind::matmul) fit.terms[2] = element;
  return fit;
}

void add_gpu(const GpuSheet& sheet, Cluster& cluster) {
  constexpr double kGiga = 1e9, kGibi = 1 << 30;
  NodeClass one;
  one.name = sheet.name;
  one.nodes = 1;
  one.ranks_per_node = sheet.gpus;
  one.gpus_per_rank = 1;
  one.device = sheet.device;
  one.memory_bytes = static_cast<index_t>(sheet.memory_gib * kGibi);
  one.calibration = {Calibrated::data_sheet, "", sheet.source};
  for (const ComputeType format :
       {ComputeType::fp32, ComputeType::tf32, ComputeType::bf16, ComputeType::fp16}) {
    const double flops = vendor_peak(sheet.device, format, MatmulType::compute);
    if (flops <= 0) continue;
    for (std::size_t kind = 0; kind < kOperatorKinds; ++kind)
      one.operators.push_back(
          {static_cast<OperatorKind>(kind),
           format,
           sheet_fit(static_cast<OperatorKind>(kind), flops, kGiga * sheet.memory_gbs,
                     static_cast<double>(size_of(activation_of(format)))),
           {}});
  }
  Level node;
  node.name = "node";
  node.node_class = one.name;
  node.nodes = 1;
  node.alpha_seconds = kLinkHop;
  node.beta_seconds_per_byte = 2 / (kGiga * sheet.link_gbs);  // one direction
  node.calibration = one.calibration;
  cluster.classes.push_back(std::move(one));
  cluster.levels.push_back(std::move(node));
}

/// Of one class, or of all where that is empty.
void add_network(const NetworkSheet& sheet, index_t nics, const std::string& node_class,
                 Cluster& cluster) {
  constexpr double kBytesPerGbit = 1e9 / 8;
  Level network;
  network.name = "network";
  network.alpha_seconds = kNetworkHop;
  network.beta_seconds_per_byte = 1 / (kBytesPerGbit * sheet.gbit);
  network.node_class = node_class;
  network.nics_per_node = sheet.infiniband ? nics : 1;
  network.calibration = {Calibrated::data_sheet, "", sheet.source};
  cluster.levels.push_back(std::move(network));
}

template <class Sheets>
const typename Sheets::value_type* find_sheet(const Sheets& sheets, const std::string& name) {
  const auto found =
      std::find_if(sheets.begin(), sheets.end(), [&](const auto& one) { return one.name == name; });
  return found == sheets.end() ? nullptr : &*found;
}

}  // namespace

std::vector<std::string> cluster_presets() {
  std::vector<std::string> names;
  for (const GpuSheet& sheet : kGpus) names.emplace_back(sheet.name);
  for (const NetworkSheet& sheet : kNetworks) names.emplace_back(sheet.name);
  return names;
}

Cluster cluster_of_presets(const std::vector<std::string>& names) {
  Cluster cluster;
  std::vector<const GpuSheet*> nodes;
  const NetworkSheet* network = nullptr;
  for (const std::string& name : names) {
    if (const GpuSheet* gpu = find_sheet(kGpus, name)) {
      if (cluster.find_class(name) != nullptr) continue;
      add_gpu(*gpu, cluster);
      nodes.push_back(gpu);
    } else if (const NetworkSheet* other = find_sheet(kNetworks, name)) {
      if (network != nullptr)
        throw_error(ExitCode::usage, "--preset: {} is a second network", name);
      network = other;
    } else {
      const std::vector<std::string> known = cluster_presets();
      const auto near = nearest_word(name, known);
      throw_error(ExitCode::usage, "there is no preset {}{}", name,
                  near ? "; did you mean " + *near + "?" : "");
    }
  }
  if (network == nullptr) return cluster;
  const index_t nics = nodes.empty() ? 1 : nodes.front()->nics;
  const bool alike = std::all_of(nodes.begin(), nodes.end(),
                                 [&](const GpuSheet* gpu) { return gpu->nics == nics; });
  if (alike) add_network(*network, nics, "", cluster);
  for (const GpuSheet* gpu : nodes)
    if (!alike) add_network(*network, gpu->nics, gpu->name, cluster);
  return cluster;
}

}  // namespace t3d
