#include "tools/calibrate/slurm_cluster.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <set>

#include "core/error.hpp"
#include "core/node_list.hpp"
#include "sched/ask.hpp"
#include "sched/slurm_job.hpp"

namespace t3d {
namespace {

constexpr double kMostCount = 1e9;

std::vector<std::string> parts_of(std::string_view text, char between) {
  std::vector<std::string> parts;
  while (true) {
    const auto end = std::min(text.find(between), text.size());
    parts.emplace_back(text.substr(0, end));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines = parts_of(text, '\n');
  std::erase(lines, "");
  return lines;
}

/// The number at the beginning; 0 where there is none, or a hostile one.
double number_of(std::string_view text) {
  double value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  return fault == std::errc{} && value > 0 && value <= 1e15 ? value : 0;
}
index_t count_of(std::string_view text) {
  return static_cast<index_t>(std::min(number_of(text), kMostCount));
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return text;
}

/// "gpu:a100:4(S:0-1),shard:8" -> 4 of a100. Several types: their sum, the first one's name.
struct Gpus {
  index_t count = 0;
  std::string type;
};
Gpus gpus_of(const std::string& gres) {
  Gpus all;
  for (const std::string& element : parts_of(gres, ',')) {
    const std::vector<std::string> words = parts_of(element.substr(0, element.find('(')), ':');
    if (words.front() != "gpu") continue;
    const index_t count = words.size() > 1 ? count_of(words.back()) : 1;
    if (words.size() > 2 && all.type.empty()) all.type = words[1];
    all.count += std::max<index_t>(1, count);
  }
  return all;
}

/// Nodes that a job will never get, as they are now.
bool is_lost(const std::string& state) {
  for (const char* word : {"down", "drain", "fail", "future", "unknown", "inval"})
    if (state.find(word) != std::string::npos) return true;
  return false;
}

/// One line of sinfo.
struct NodeLine {
  std::string partition, state, features, gres;
  index_t cpus = 0, cores = 0, memory_mib = 0;
  std::vector<std::string> names;
};
std::optional<NodeLine> node_line(const std::string& line) {
  constexpr std::size_t kFields = 11;
  const std::vector<std::string> fields = parts_of(line, '|');
  if (fields.size() != kFields) return std::nullopt;
  NodeLine one;
  one.partition = fields[0];
  one.state = fields[2];
  one.cpus = count_of(fields[3]);
  one.cores = count_of(fields[4]) * count_of(fields[5]);
  if (one.cores == 0) one.cores = one.cpus / std::max<index_t>(1, count_of(fields[6]));
  one.memory_mib = count_of(fields[7]);
  if (one.memory_mib == 1) one.memory_mib = 0;  // Slurm's default where RealMemory is not set
  one.features = fields[8] == "(null)" ? "" : fields[8];
  one.gres = fields[9] == "(null)" ? "" : fields[9];
  one.names = names_of_node_list(fields[10]);
  return one;
}

/// Nodes of one hardware, features and set of partitions.
struct SlurmKind {
  NodeLine line;
  std::set<std::string> partitions;
  std::vector<std::string> names;
};

class SlurmCluster {
 public:
  SlurmCluster(const SlurmTexts& texts, std::vector<std::string>& notes)
      : texts_(texts), notes_(notes) {}

  Cluster make() {
    cluster_.name = config_value("ClusterName");
    cluster_.scheduler.kind = "slurm";
    // With Slurm's defaults a job that comes back is held for so long.
    constexpr double kHeldSeconds = 120;
    cluster_.scheduler.requeue_delay_seconds = kHeldSeconds;
    cluster_.scheduler.bills_largest =
        config_value("PriorityFlags").find("MAX_TRES") != std::string::npos;
    find_kinds();
    if (kinds_.empty())
      throw_error(ExitCode::unavailable, "Slurm names no node that a job could get");
    read_partitions();
    for (const SlurmKind& kind : kinds_) add_class(kind);
    for (SchedulerPartition& partition : cluster_.scheduler.partitions)
      for (std::size_t at = 0; at < kinds_.size(); ++at)
        if (kinds_[at].partitions.contains(partition.name))
          partition.classes.push_back(cluster_.classes[at].name);
    add_levels();
    return std::move(cluster_);
  }

 private:
  /// "Key = value" of scontrol show config.
  [[nodiscard]] std::string config_value(const std::string& key) const {
    for (const std::string& line : lines_of(texts_.config)) {
      const auto equals = line.find('=');
      if (equals == std::string::npos || !line.starts_with(key)) continue;
      if (line.find_first_not_of(' ', key.size()) != equals) continue;
      const auto begin = line.find_first_not_of(' ', equals + 1);
      if (begin == std::string::npos) return {};
      return line.substr(begin, line.find_last_not_of(' ') + 1 - begin);
    }
    return {};
  }

  void find_kinds() {
    std::map<std::string, NodeLine> nodes;  // by name
    std::map<std::string, std::set<std::string>> partitions;
    std::set<std::string> lost;
    std::vector<std::string> order;
    for (const std::string& text : lines_of(texts_.nodes)) {
      const auto line = node_line(text);
      if (!line) {
        notes_.push_back(fmt::format("sinfo: a line that is not understood: {}", text));
        continue;
      }
      for (const std::string& name : line->names) {
        if (is_lost(line->state)) {
          lost.insert(name);
          continue;
        }
        if (nodes.try_emplace(name, *line).second) order.push_back(name);
        partitions[name].insert(line->partition);
      }
    }
    if (!lost.empty())
      notes_.push_back(fmt::format("{} node{} left out, down or drained: {}", lost.size(),
                                   lost.size() == 1 ? "" : "s",
                                   node_list_of({lost.begin(), lost.end()})));
    std::map<std::string, std::size_t> known;
    for (const std::string& name : order) {
      const NodeLine& line = nodes[name];
      const std::string key =
          fmt::format("{} {} {} {} {} {}", line.cpus, line.cores, line.memory_mib, line.features,
                      line.gres, fmt::join(partitions[name], ","));
      const auto [entry, fresh] = known.try_emplace(key, kinds_.size());
      if (fresh) kinds_.push_back({line, partitions[name], {}});
      kinds_[entry->second].names.push_back(name);
    }
  }

  void add_class(const SlurmKind& kind) {
    constexpr index_t kMib = index_t{1} << 20;
    const Gpus gpus = gpus_of(kind.line.gres);
    NodeClass one;
    one.name = unused_name(kind, gpus);
    one.nodes = std::ssize(kind.names);
    one.ranks_per_node = std::max<index_t>(1, gpus.count);
    one.gpus_per_rank = gpus.count > 0 ? 1 : 0;
    one.cores_per_rank = std::max<index_t>(1, kind.line.cores / one.ranks_per_node);
    if (gpus.count > 0)
      one.device = gpus.type.empty() ? "gpu" : gpus.type;
    else
      one.memory_bytes = kind.line.memory_mib * kMib;
    if (!kind.line.features.empty()) one.features = parts_of(kind.line.features, ',');
    one.node_list = node_list_of(kind.names);
    one.preemptible = true;
    const SchedulerPartition* first = nullptr;
    for (const SchedulerPartition& partition : cluster_.scheduler.partitions) {
      if (!kind.partitions.contains(partition.name)) continue;
      if (first == nullptr || (partition.fallback && !first->fallback)) first = &partition;
    }
    if (first != nullptr) {
      one.partition = first->name;
      one.preemptible = first->preemptible;
      one.price_per_node_hour = billed(first->billing, kind.line, gpus.count);
      if (one.price_per_node_hour > 0) one.currency = "billing units";
    } else {
      one.partition = *kind.partitions.begin();
      one.preemptible = false;
    }
    one.asks_memory = asks_memory(kind.line, one.partition);
    cluster_.classes.push_back(std::move(one));
  }

  /// Slurm refuses --mem where RealMemory is not set, and ignores it where it does not share out
  /// memory.
  [[nodiscard]] AsksMemory asks_memory(const NodeLine& line, const std::string& partition) const {
    if (line.memory_mib == 0) return AsksMemory::no;
    const auto own = select_parameters_.find(partition);
    const std::string words =
        own != select_parameters_.end() ? own->second : config_value("SelectTypeParameters");
    if (words.empty()) return AsksMemory::unknown;
    return lower(words).find("memory") == std::string::npos ? AsksMemory::no : AsksMemory::yes;
  }

  [[nodiscard]] double billed(const Billing& weights, const NodeLine& line, index_t gpus) const {
    constexpr double kMibPerGib = 1024;
    const std::array parts{weights.node, weights.core * static_cast<double>(line.cpus),
                           weights.gpu * static_cast<double>(gpus),
                           weights.memory_gib * static_cast<double>(line.memory_mib) / kMibPerGib};
    double sum = 0, most = 0;
    for (const double part : parts) {
      sum += part;
      most = std::max(most, part);
    }
    return cluster_.scheduler.bills_largest ? most : sum;
  }

  [[nodiscard]] std::string unused_name(const SlurmKind& kind, const Gpus& gpus) const {
    std::string name =
        gpus.count > 0
            ? fmt::format("{}x{}", gpus.count, gpus.type.empty() ? "gpu" : gpus.type)
            : fmt::format("cpu{}-{}g", kind.line.cores, (kind.line.memory_mib + 512) / 1024);
    if (kinds_.size() > 1 && gpus.count == 0 && !kind.line.features.empty())
      name = parts_of(kind.line.features, ',').front() + "-" + name;
    const std::string wished = name;
    for (int number = 2; cluster_.find_class(name) != nullptr; ++number)
      name = fmt::format("{}-{}", wished, number);
    return name;
  }

  void read_partitions() {
    const bool preempts = !config_value("PreemptType").empty() &&
                          config_value("PreemptType").find("none") == std::string::npos;
    double highest = 0;
    const std::vector<std::string> lines = lines_of(texts_.partitions);
    for (const std::string& line : lines)
      highest = std::max(highest, number_of(value_of_key(line, "PriorityTier")));
    for (const std::string& line : lines) {
      SchedulerPartition one;
      one.name = value_of_key(line, "PartitionName");
      if (one.name.empty()) continue;
      const std::string parameters = value_of_key(line, "SelectTypeParameters");
      if (!parameters.empty() && parameters != "NONE") select_parameters_[one.name] = parameters;
      constexpr double kMinute = 60;  // Slurm counts in minutes, upward
      const double limit = seconds_of_slurm_time(value_of_key(line, "MaxTime")).value_or(0);
      one.time_limit_seconds = limit > 0 ? std::max(limit, kMinute) : 0;
      one.most_nodes = count_of(value_of_key(line, "MaxNodes"));
      one.fallback = value_of_key(line, "Default") == "YES";
      one.preemptible = preempts && value_of_key(line, "PreemptMode") != "OFF" &&
                        number_of(value_of_key(line, "PriorityTier")) < highest;
      if (one.preemptible) one.grace_seconds = grace_seconds_of(line).value_or(0);
      one.billing = billing_of_weights(value_of_key(line, "TRESBillingWeights"));
      cluster_.scheduler.partitions.push_back(std::move(one));
    }
    if (lines.empty()) notes_.emplace_back("partitions: scontrol show partition says nothing");
  }

  /// Inside nodes, under one switch, over switches.
  void add_levels() {
    Level inside;
    inside.name = "node";
    inside.nodes = 1;
    cluster_.levels.push_back(inside);
    std::size_t leaves = 0;
    Level leaf, outer;
    leaf.name = "leaf";
    for (const std::string& line : lines_of(texts_.topology)) {
      const bool block = line.starts_with("BlockName=");
      if (!block && value_of_key(line, "Level") != "0") continue;
      const auto names = names_of_node_list(value_of_key(line, "Nodes"));
      leaf.nodes = std::max<index_t>(leaf.nodes, std::ssize(names));
      ++leaves;
    }
    if (leaves > 1 && leaf.nodes > 1) cluster_.levels.push_back(leaf);
    outer.name = leaves > 1 ? "core" : "network";
    cluster_.levels.push_back(outer);
    if (leaves == 0)
      notes_.emplace_back(
          "switches: Slurm has no topology here, so all nodes count as equally near");
  }

  const SlurmTexts& texts_;
  std::vector<std::string>& notes_;
  std::vector<SlurmKind> kinds_;
  std::map<std::string, std::string> select_parameters_;  // of partitions that have their own
  Cluster cluster_;
};

}  // namespace

std::optional<SlurmTexts> ask_slurm_for_cluster() {
  constexpr double kLimitSeconds = 30;
  SlurmTexts texts;
  const auto nodes =
      output_of({"sinfo", "--noheader", "--exact", fmt::format("--format={}", kSlurmNodeFormat)},
                kLimitSeconds);
  if (!nodes) return std::nullopt;
  texts.nodes = *nodes;
  const auto ask = [&](const std::vector<std::string>& words) {
    return output_of(words, kLimitSeconds).value_or("");
  };
  texts.partitions = ask({"scontrol", "--oneliner", "show", "partition"});
  texts.config = ask({"scontrol", "show", "config"});
  texts.topology = ask({"scontrol", "--oneliner", "show", "topology"});
  return texts;
}

Cluster slurm_cluster_of(const SlurmTexts& texts, std::vector<std::string>& notes) {
  return SlurmCluster(texts, notes).make();
}

Billing billing_of_weights(const std::string& weights) {
  constexpr double kMibPerGib = 1024;
  Billing billing;
  for (std::string element : parts_of(weights, ',')) {
    const auto equals = element.find('=');
    if (equals == std::string::npos) continue;
    element = lower(element);
    const std::string key = element.substr(0, equals), text = element.substr(equals + 1);
    const double value = number_of(text);
    if (key == "cpu") billing.core = value;
    if (key == "node") billing.node = value;
    if (key.starts_with("gres/gpu")) billing.gpu = std::max(billing.gpu, value);
    if (key != "mem") continue;
    switch (text.empty() ? 'm' : text.back()) {  // per MiB where no unit is said
      case 'k': billing.memory_gib = value * kMibPerGib * kMibPerGib; break;
      case 'g': billing.memory_gib = value; break;
      case 't': billing.memory_gib = value / kMibPerGib; break;
      default: billing.memory_gib = value * kMibPerGib;
    }
  }
  return billing;
}

}  // namespace t3d
