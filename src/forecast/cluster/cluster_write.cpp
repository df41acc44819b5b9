// Writes cluster.toml: what people edit first, tables of measured samples at the end.
#include <fmt/ranges.h>

#include <functional>
#include <set>

#include "forecast/cluster/cluster_file.hpp"
#include "forecast/cluster/cluster_keys.hpp"
#include "forecast/cluster/operator_terms.hpp"

namespace t3d {
namespace {

constexpr const char* kHead =
    "# What is known of a cluster: transformer3d calibrate wrote it, plan and simulate read it.\n"
    "# Numbers may be edited; comments are not kept by calibrate --add. Units are in the names;\n"
    "# NAME_error is the standard error of NAME. docs/15-cluster-file.md explains every key.\n"
    "has_end = true                                 # the last line is [end]: a cut file is "
    "noticed\n"
    "version = 1\n";
constexpr const char* kSamplesHead =
    "\n# Measured samples. Estimates are exact at a sample, corrected near it, and follow the "
    "terms\n"
    "# far from all. To state a rate yourself, edit `terms` and delete `samples`.\n";

class ClusterWriter {
 public:
  std::string write(Cluster cluster) {
    text_ = kHead;
    table("cluster", cluster_keys(cluster), cluster_keys(unsaid_));
    NodeClass no_class;
    for (NodeClass& one : cluster.classes) element("class", class_keys(one), class_keys(no_class));
    Level no_level;
    for (Level& one : cluster.levels) element("level", level_keys(one), level_keys(no_level));
    write_tables(cluster);
    SchedulerPartition no_partition;
    for (SchedulerPartition& one : cluster.scheduler.partitions)
      element("partition", partition_keys(one), partition_keys(no_partition));
    write_factors(cluster);
    write_samples(cluster);
    text_ += "\n[end]\n";
    return std::move(text_);
  }

 private:
  void write_tables(Cluster& cluster) {
    StorageEntry storage{cluster.storage, rows_of(cluster.storage.writes),
                         rows_of(cluster.storage.reads)};
    StorageEntry no_storage;
    table("storage", storage_keys(storage), storage_keys(no_storage));
    NumberRows starts, no_starts;
    for (const StartTime& start : cluster.startup.starts)
      starts.push_back({static_cast<double>(start.ranks), start.seconds, start.error});
    table("startup", startup_keys(starts), startup_keys(no_starts));
    table("scheduler", scheduler_keys(cluster.scheduler), scheduler_keys(unsaid_.scheduler));
  }

  void write_factors(Cluster& cluster) {
    FactorEntry no_factor;
    for (NodeClass& one : cluster.classes) {
      if (one.factors.steps == 0) continue;
      FactorEntry entry{one.name, one.factors};
      element("factor", factor_keys(entry), factor_keys(no_factor));
    }
  }

  void write_samples(Cluster& cluster) {
    bool first = true;
    const auto head = [&] {
      if (std::exchange(first, false)) text_ += kSamplesHead;
    };
    OperatorEntry no_operator;
    CollectiveEntry no_collective;
    for (NodeClass& one : cluster.classes)
      for (OperatorTable& table : one.operators) {
        head();
        const TableForm form = form_of(table.kind);
        OperatorEntry entry{one.name, table, rows_of(table.samples, form.columns.size())};
        samples_element("operator", form, operator_keys(entry), operator_keys(no_operator));
      }
    for (Level& level : cluster.levels)
      for (CollectiveTable& table : level.collectives) {
        head();
        CollectiveEntry entry{level.name, level.node_class, table,
                              rows_of(table.samples, collective_form().columns.size())};
        samples_element("collective", collective_form(), collective_keys(entry),
                        collective_keys(no_collective));
      }
  }

  static NumberRows rows_of(const std::vector<StorageRate>& rates) {
    NumberRows rows;
    for (const StorageRate& rate : rates)
      rows.push_back({static_cast<double>(rate.processes), rate.bytes_per_second, rate.error});
    return rows;
  }
  static NumberRows rows_of(const std::vector<Sample>& samples, std::size_t columns) {
    NumberRows rows;
    for (const Sample& sample : samples) {
      std::vector<double>& row = rows.emplace_back(
          sample.shape.begin(), sample.shape.begin() + static_cast<std::ptrdiff_t>(columns));
      row.push_back(sample.seconds);
      row.push_back(sample.error);
    }
    return rows;
  }

  void table(const std::string& name, const std::vector<Key>& keys,
             const std::vector<Key>& unsaid) {
    text_ += fmt::format("\n[{}]\n", name);
    lines(name, keys, unsaid);
  }
  void element(const std::string& name, const std::vector<Key>& keys,
               const std::vector<Key>& unsaid) {
    text_ += fmt::format("\n[[{}]]\n", name);
    lines(name, keys, unsaid);
  }
  void samples_element(const std::string& name, const TableForm& form, const std::vector<Key>& keys,
                       const std::vector<Key>& unsaid) {
    text_ += fmt::format("\n[[{}]]\n# terms: seconds of a {}; samples: {}, seconds, error\n", name,
                         fmt::join(form.terms, ", "), fmt::join(form.columns, ", "));
    lines(name, keys, unsaid);
  }

  /// What a key means stands where its list begins.
  void lines(const std::string& name, const std::vector<Key>& keys,
             const std::vector<Key>& unsaid) {
    const bool explains = explained_.insert(name).second;
    for (std::size_t at = 0; at < keys.size(); ++at) {
      const Key& key = keys[at];
      const std::string value = value_text(key, unused_);
      if (!key.fallback.empty() && value == value_text(unsaid[at], unused_)) continue;
      std::string line = fmt::format("{} = {}", key.name, value);
      const bool comment = explains && !key.help.empty() && value.find('\n') == std::string::npos;
      text_ += comment ? fmt::format("{:<44}  # {}\n", line, key.help) : line + "\n";
    }
  }

  Cluster unsaid_;
  Config unused_;  // what slots of other lists point into
  std::set<std::string> explained_;
  std::string text_;
};

}  // namespace

std::string cluster_text(const Cluster& cluster) { return ClusterWriter().write(cluster); }

}  // namespace t3d
