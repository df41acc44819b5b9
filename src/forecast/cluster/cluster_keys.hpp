// The keys of cluster.toml: one list for reading and for writing. Slots point into the values that
// a function is given, which must outlive its keys.
#pragma once
#include <string>
#include <vector>

#include "config/config_schema.hpp"
#include "forecast/cluster/cluster.hpp"

namespace t3d {

/// [[operator]]: a table, and whose it is.
struct OperatorEntry {
  std::string node_class;
  OperatorTable table;
  NumberRows samples;
};
/// [[collective]]
struct CollectiveEntry {
  std::string level, node_class;
  CollectiveTable table;
  NumberRows samples;
};
/// [[factor]]
struct FactorEntry {
  std::string node_class;
  RunFactors factors;
};
struct StorageEntry {
  Storage storage;
  NumberRows writes, reads;
};

[[nodiscard]] std::vector<Key> cluster_keys(Cluster& cluster);  // [cluster]
[[nodiscard]] std::vector<Key> class_keys(NodeClass& node_class);
[[nodiscard]] std::vector<Key> level_keys(Level& level);
[[nodiscard]] std::vector<Key> storage_keys(StorageEntry& entry);
[[nodiscard]] std::vector<Key> startup_keys(NumberRows& starts);
[[nodiscard]] std::vector<Key> scheduler_keys(Scheduler& scheduler);
[[nodiscard]] std::vector<Key> partition_keys(SchedulerPartition& partition);
[[nodiscard]] std::vector<Key> factor_keys(FactorEntry& entry);
[[nodiscard]] std::vector<Key> operator_keys(OperatorEntry& entry);
[[nodiscard]] std::vector<Key> collective_keys(CollectiveEntry& entry);

}  // namespace t3d
