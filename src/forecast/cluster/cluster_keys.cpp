#include "forecast/cluster/cluster_keys.hpp"

#include <algorithm>

namespace t3d {
namespace {

/// Numbers beyond these are slips, and sums of products of those inside are numbers still.
constexpr double kMostCount = 1e9, kMostBytes = 1e18, kMostSeconds = 1e12, kMostPrice = 1e12;

constexpr Range kCount{0, kMostCount}, kPositiveCount{1, kMostCount}, kBytes{0, kMostBytes},
    kSeconds{0, kMostSeconds}, kJitter{0, 10}, kJitterExponent{0, 0.5}, kPlanSeconds{0, 1e9},
    kPrice{0, kMostPrice}, kNumber{0, 1e30},
    kShape{0.05, 20};  // this and kPlanSeconds as in a job plan, which plan writes of it
/// Keys that are not written where they have this value say nothing.
constexpr const char* kQuiet = "not said";

class KeyList {
 public:
  explicit KeyList(std::string table) : table_(std::move(table)) {}

  template <class Field>
  KeyList& key(const char* name, Field& field, const char* help, Range range = {},
               const char* fallback = "") {
    Key& made = keys_.emplace_back();
    made.table = table_;
    made.name = name;
    made.help = help;
    made.range = range;
    made.fallback = fallback;
    if constexpr (Worded<Field>) {
      made.words.assign(Words<Field>::all.begin(), Words<Field>::all.end());
      made.slot = [&field](Config&) -> Slot {
        return WordSlot{[&field](std::string_view word) { field = *choice_of<Field>(word); },
                        [&field] { return word_of(field); }};
      };
    } else {
      made.slot = [&field](Config&) -> Slot { return &field; };
    }
    return *this;
  }
  template <class Field>
  KeyList& quiet(const char* name, Field& field, const char* help, Range range = {}) {
    return key(name, field, help, range, kQuiet);
  }
  KeyList& verb(const char* name, Verb& field, const char* help) {
    Key& made = keys_.emplace_back();
    made.table = table_;
    made.name = name;
    made.help = help;
    for (const Verb verb : kLevelVerbs) made.words.emplace_back(name_of(verb));
    made.slot = [&field](Config&) -> Slot {
      return WordSlot{[&field](std::string_view word) {
                        field = *std::find_if(kLevelVerbs.begin(), kLevelVerbs.end(),
                                              [&](Verb verb) { return name_of(verb) == word; });
                      },
                      [&field] { return name_of(field); }};
    };
    return *this;
  }
  /// A measured number and its error.
  KeyList& measured(const char* name, double& value, const char* error_name, double& error,
                    const char* help, Range range) {
    key(name, value, help, range);
    return quiet(error_name, error, "its standard error; 0 = stated", range);
  }
  KeyList& calibration(Calibration& calibration) {
    key("calibrated", calibration.state, "measured, uncalibrated, uncalibrated (data sheet)");
    quiet("calibrated_time", calibration.time, "when (UTC)");
    return quiet("calibrated_by", calibration.version, "by which program, or whose data sheet");
  }
  KeyList& fit(Fit& fit) {
    key("form", fit.form, "sum of all terms; max: the call plus the larger of flops and the rest");
    key("terms", fit.terms, "seconds by unit of each term", kNumber);
    return quiet("term_errors", fit.errors, "their standard errors", kNumber);
  }

  std::vector<Key> take() { return std::move(keys_); }

 private:
  std::string table_;
  std::vector<Key> keys_;
};

}  // namespace

std::vector<Key> cluster_keys(Cluster& cluster) {
  return KeyList("cluster").key("name", cluster.name, "for people").take();
}

std::vector<Key> class_keys(NodeClass& own) {
  KeyList list("class");
  list.key("name", own.name, "of these nodes, which are alike")
      .key("nodes", own.nodes, "that a job may ask for", kPositiveCount)
      .key("ranks_per_node", own.ranks_per_node, "processes on each", kPositiveCount)
      .key("cores_per_rank", own.cores_per_rank, "0 = not known", kCount)
      .key("gpus_per_rank", own.gpus_per_rank, "", kCount)
      .key("device", own.device, "\"cpu\", or the GPU's name")
      .quiet("processor", own.processor, "what the system calls it")
      .key("memory_bytes", own.memory_bytes, "of one rank, for tensors; 0 = not known", kBytes)
      .quiet("asks_memory", own.asks_memory,
             "yes, no: do job scripts ask Slurm for memory; not said = yes")
      .key("price_per_node_hour", own.price_per_node_hour, "0 = a plan counts node-hours", kPrice)
      .key("currency", own.currency, "\"EUR\", \"billing units\", ...")
      .key("preemptible", own.preemptible, "its losses are announced by the partition's grace")
      .key("hazard_shape", own.hazard_shape, "Weibull, of a node's age when it is lost", kShape)
      .key("hazard_scale_hours", own.hazard_scale_hours, "0 = never lost", kSeconds)
      .key("return_hours", own.return_hours, "until a lost node is replaced; 0 = not known",
           kSeconds)
      .quiet("features", own.features, "Slurm's")
      .quiet("partition", own.partition, "Slurm's")
      .quiet("node_list", own.node_list, "which nodes, as the scheduler writes it")
      .measured("launch_seconds", own.launch_seconds, "launch_seconds_error",
                own.launch_seconds_error, "of the host, to start one operator", kSeconds)
      .measured("jitter", own.jitter, "jitter_error", own.jitter_error,
                "relative deviation of equal pieces of computing, for which ranks wait", kJitter)
      .key("jitter_exponent", own.jitter_exponent,
           "pieces of t ms deviate by jitter x t^-exponent; 0 = any length as a millisecond",
           kJitterExponent)
      .calibration(own.calibration);
  return list.take();
}

std::vector<Key> level_keys(Level& own) {
  KeyList list("level");
  list.key("name", own.name, "\"node\", \"leaf\", \"core\", ...")
      .key("class", own.node_class, "whose nodes; \"\" = all classes")
      .key("nodes", own.nodes, "in one group: 1 = inside a node, 0 = any number", kCount)
      .key("ranks", own.ranks, "inside a node: ranks of one group, 0 = all", kCount)
      .key("nics_per_node", own.nics_per_node, "", kPositiveCount)
      .key("oversubscription", own.oversubscription,
           "all nodes below send so many times what the switches' links carry", {1, kMostCount})
      .measured("alpha_seconds", own.alpha_seconds, "alpha_seconds_error", own.alpha_seconds_error,
                "of one message", kSeconds)
      .measured("beta_seconds_per_byte", own.beta_seconds_per_byte, "beta_seconds_per_byte_error",
                own.beta_seconds_per_byte_error, "one group sends", kSeconds)
      .measured("beta_together_seconds_per_byte", own.beta_together_seconds_per_byte,
                "beta_together_seconds_per_byte_error", own.beta_together_seconds_per_byte_error,
                "groups_together send at once", kSeconds)
      .key("groups_together", own.groups_together, "0 = not known", kCount)
      .calibration(own.calibration);
  return list.take();
}

std::vector<Key> storage_keys(StorageEntry& entry) {
  KeyList list("storage");
  Storage& own = entry.storage;
  list.key("folder", own.folder, "where it was measured")
      .measured("latency_seconds", own.latency_seconds, "latency_seconds_error",
                own.latency_seconds_error, "to make, sync and rename a small file", kSeconds)
      .key("writes", entry.writes, "[writers, bytes per second of all, standard error]", kBytes)
      .key("reads", entry.reads, "[readers, bytes per second of all, standard error]", kBytes)
      .calibration(own.calibration);
  return list.take();
}

std::vector<Key> startup_keys(NumberRows& starts) {
  return KeyList("startup")
      .key("starts", starts, "[ranks, seconds until all compute, standard error]", kSeconds)
      .take();
}

std::vector<Key> scheduler_keys(Scheduler& own) {
  return KeyList("scheduler")
      .key("kind", own.kind, "\"slurm\", or \"\"")
      .key("requeue_delay_seconds", own.requeue_delay_seconds,
           "from a job's end until it may start again", kPlanSeconds)
      .key("bills_largest", own.bills_largest, "of a node the largest part, not the sum")
      .take();
}

std::vector<Key> partition_keys(SchedulerPartition& own) {
  return KeyList("partition")
      .key("name", own.name, "as the scheduler knows it")
      .key("classes", own.classes, "of its nodes")
      .key("time_limit_seconds", own.time_limit_seconds, "0 = none", kSeconds)
      .key("grace_seconds", own.grace_seconds, "from a preemption's signal to the kill",
           kPlanSeconds)
      .key("most_nodes", own.most_nodes, "of one job; 0 = all", kCount)
      .key("preemptible", own.preemptible, "its jobs give way to others")
      .key("fallback", own.fallback, "for jobs that name no partition")
      .key("bills_node", own.billing.node, "for an hour of each node", kPrice)
      .key("bills_core", own.billing.core, "", kPrice)
      .key("bills_gpu", own.billing.gpu, "", kPrice)
      .key("bills_memory_gib", own.billing.memory_gib, "", kPrice)
      .take();
}

std::vector<Key> factor_keys(FactorEntry& own) {
  constexpr Range kFactor{0.01, 100};
  RunFactors& factors = own.factors;
  KeyList list("factor");
  list.key("class", own.node_class, "whose");
  const auto add = [&](const char* name, const char* error_name, RunFactor& factor,
                       const char* help) {
    list.key(name, factor.value, help, kFactor);
    list.key(error_name, factor.error, "standard error; 0 = not measured", kNumber);
  };
  add("compute", "compute_error", factors.compute, "operators took so many times the tables");
  add("inside", "inside_error", factors.inside, "messages inside nodes");
  add("between", "between_error", factors.between, "messages between nodes");
  add("host", "host_error", factors.host, "starting operators");
  return list.key("steps", factors.steps, "that were measured", kPositiveCount)
      .key("time", factors.time, "when the last run ended (UTC)")
      .key("runs", factors.runs, "their ids")
      .take();
}

std::vector<Key> operator_keys(OperatorEntry& own) {
  KeyList list("operator");
  list.key("class", own.node_class, "whose")
      .key("kind", own.table.kind, "")
      .key("format", own.table.format, "of its numbers")
      .quiet("unreliable", own.table.unreliable, "times spread widely, measured twice")
      .fit(own.table.fit)
      .key("samples", own.samples, "", kNumber);
  return list.take();
}

std::vector<Key> collective_keys(CollectiveEntry& own) {
  KeyList list("collective");
  list.key("level", own.level, "which [[level]]")
      .key("class", own.node_class, "of that level")
      .verb("verb", own.table.verb, "")
      .quiet("unreliable", own.table.unreliable, "times spread widely, measured twice")
      .fit(own.table.fit)
      .key("samples", own.samples, "", kNumber);
  return list.take();
}

}  // namespace t3d
