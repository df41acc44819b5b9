#include "tools/plan/plan_sources.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "forecast/cluster/old_gpus.hpp"
#include "forecast/cluster/sample_spread.hpp"
#include "tools/plan/job_options.hpp"

namespace t3d {
namespace {

/// Names of the members of `list` for which `fact` is true.
template <class List, class Fact>
std::vector<std::string> names_where(const List& list, const Fact& fact) {
  std::vector<std::string> names;
  for (const auto& one : list)
    if (fact(one) && std::find(names.begin(), names.end(), one.name) == names.end())
      names.push_back(one.name);
  return names;
}

}  // namespace

std::vector<std::string> guessed_parts(const Cluster& cluster, ComputeType compute) {
  std::vector<std::string> lines;
  const auto say = [&](const std::vector<std::string>& names, const char* text) {
    if (!names.empty()) lines.push_back(fmt::format(fmt::runtime(text), fmt::join(names, ", ")));
  };
  const auto in_state = [](Calibrated state) {
    return [state](const auto& one) { return one.calibration.state == state; };
  };
  say(names_where(cluster.classes, in_state(Calibrated::data_sheet)),
      "data-sheet guess: rates of {} are the maker's peaks; steps often take twice as long");
  say(names_where(cluster.classes, in_state(Calibrated::no)), "not measured: rates of {}");
  say(names_where(cluster.levels, in_state(Calibrated::data_sheet)),
      "data-sheet guess: messages over {}");
  say(names_where(cluster.classes,
                  [](const NodeClass& one) {
                    return std::any_of(one.operators.begin(), one.operators.end(),
                                       [](const OperatorTable& table) {
                                         return table.unreliable || spreads_widely(table.samples);
                                       });
                  }),
      "measured too briefly: times of {} spread by more than 20 %; calibrate with --seconds more");
  say(names_where(cluster.levels,
                  [](const Level& one) {
                    return std::any_of(
                        one.collectives.begin(), one.collectives.end(),
                        [](const CollectiveTable& table) { return table.unreliable; });
                  }),
      "unreliable: times of messages over {} spread by more than 20 %, measured twice");
  say(names_where(cluster.classes, [](const NodeClass& one) { return is_old_gpu(one.device); }),
      "no run possible: GPUs of {} have no compute capability 8.0, which this program's kernels "
      "need");
  if (compute == ComputeType::bf16)
    say(names_where(cluster.classes, [](const NodeClass& one) { return is_old_gpu(one.device); }),
        "GPUs of {} have no units for bf16: it is priced as fp32");
  if (cluster.storage.writes.empty())
    lines.push_back(fmt::format(
        "not measured: storage; checkpoints are taken to be written and read at {:.1f} GB/s",
        1e-9 * kUnknownDisk));
  if (cluster.startup.starts.empty())
    lines.emplace_back("not measured: start of a job; taken to need no time but the checkpoint's");
  return lines;
}

}  // namespace t3d
