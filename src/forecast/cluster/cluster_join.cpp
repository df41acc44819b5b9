// joined(): two measurements of parts of one cluster.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "forecast/cluster/cluster.hpp"

namespace t3d {
namespace {

template <class Value>
void take(const Value& known, Value& more, const Value& unsaid) {
  if (more == unsaid) more = known;
}

template <class Value>
void keep(const Value& known, Value& more, const Value& unsaid) {
  if (known != unsaid) more = known;
}

/// What stands in the file may have been written by people: what Slurm says fills gaps only. A
/// price and its currency belong together.
void keep_written(const NodeClass& known, NodeClass& more) {
  const NodeClass unsaid;
  keep(known.nodes, more.nodes, unsaid.nodes);
  for (const auto field : {&NodeClass::partition, &NodeClass::node_list})
    keep(known.*field, more.*field, unsaid.*field);
  keep(known.features, more.features, unsaid.features);
  keep(known.asks_memory, more.asks_memory, unsaid.asks_memory);
  if (known.price_per_node_hour > 0 || !known.currency.empty()) {
    more.price_per_node_hour = known.price_per_node_hour;
    more.currency = known.currency;
  }
}

/// Likewise; which classes a partition has is Slurm's to say.
SchedulerPartition joined_partition(const SchedulerPartition& known, SchedulerPartition more) {
  const SchedulerPartition unsaid;
  for (const auto field :
       {&SchedulerPartition::time_limit_seconds, &SchedulerPartition::grace_seconds})
    keep(known.*field, more.*field, unsaid.*field);
  keep(known.most_nodes, more.most_nodes, unsaid.most_nodes);
  keep(known.billing, more.billing, unsaid.billing);
  return more;
}

/// What rates are of: as many ranks share a node, with as much of it each.
bool same_ranks(const NodeClass& a, const NodeClass& b) {
  return a.ranks_per_node == b.ranks_per_node && a.cores_per_rank == b.cores_per_rank &&
         a.gpus_per_rank == b.gpus_per_rank && a.device == b.device;
}

/// Of number formats that were not measured this time.
void keep_other_formats(const NodeClass& known, NodeClass& more) {
  const std::vector<OperatorTable> measured = more.operators;
  for (const OperatorTable& table : known.operators)
    if (std::none_of(measured.begin(), measured.end(),
                     [&](const OperatorTable& one) { return one.format == table.format; }))
      more.operators.push_back(table);
}

/// What a measurement does not tell stays as it was.
NodeClass joined_class(const NodeClass& known, NodeClass more) {
  const NodeClass unsaid;
  for (const auto field : {&NodeClass::nodes, &NodeClass::cores_per_rank, &NodeClass::gpus_per_rank,
                           &NodeClass::memory_bytes})
    take(known.*field, more.*field, unsaid.*field);
  if (more.calibration.state == Calibrated::measured)
    more.nodes = std::max(known.nodes, more.nodes);  // those of a job are not all
  for (const auto field :
       {&NodeClass::price_per_node_hour, &NodeClass::hazard_scale_hours, &NodeClass::return_hours})
    take(known.*field, more.*field, unsaid.*field);
  if (more.hazard_scale_hours == known.hazard_scale_hours) more.hazard_shape = known.hazard_shape;
  for (const auto field :
       {&NodeClass::currency, &NodeClass::processor, &NodeClass::partition, &NodeClass::node_list})
    take(known.*field, more.*field, unsaid.*field);
  take(known.features, more.features, unsaid.features);
  take(known.asks_memory, more.asks_memory, unsaid.asks_memory);
  more.preemptible = more.preemptible || known.preemptible;
  const bool measured_both = known.calibration.state == Calibrated::measured &&
                             more.calibration.state == Calibrated::measured;
  if (measured_both && same_ranks(known, more)) keep_other_formats(known, more);
  if (more.calibration.state == Calibrated::no) keep_written(known, more);
  if (more.calibration.state == Calibrated::no) {  // rates that are known win over none
    if (!known.operators.empty()) {                // and so does what they are of
      for (const auto field : {&NodeClass::ranks_per_node, &NodeClass::cores_per_rank,
                               &NodeClass::gpus_per_rank, &NodeClass::memory_bytes})
        more.*field = known.*field;
      more.device = known.device;
      more.processor = known.processor;
    }
    more.calibration = known.calibration;
    more.operators = known.operators;
    more.factors = known.factors;  // those of other tables mean nothing
    more.launch_seconds = known.launch_seconds;
    more.launch_seconds_error = known.launch_seconds_error;
    more.jitter = known.jitter;
    more.jitter_error = known.jitter_error;
    more.jitter_exponent = known.jitter_exponent;
  }
  return more;
}

Level joined_level(const Level& known, Level more) {
  if (more.calibration.state == Calibrated::no) {
    Level level = known;
    level.nodes = more.nodes;
    level.ranks = more.ranks;
    level.node_class = more.node_class;
    return level;
  }
  // Of the wiring a measurement tells nothing.
  more.nodes = known.nodes;
  more.ranks = known.ranks;
  more.nics_per_node = known.nics_per_node;
  more.oversubscription = known.oversubscription;
  return more;
}

/// A level of one class that was known for all classes only.
Level with_wiring(const Cluster& known, Level level) {
  const Level* const all = known.find_level(level.name, "");
  return all == nullptr ? level : joined_level(*all, std::move(level));
}

/// Those of `known` in their places, then what is new.
template <class Element, class Same, class Join, class Fresh = std::identity>
std::vector<Element> joined_lists(std::vector<Element> known, const std::vector<Element>& more,
                                  const Same& same, const Join& join, const Fresh& fresh = {}) {
  for (const Element& element : more) {
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&](const Element& one) { return same(one, element); });
    if (found == known.end())
      known.push_back(fresh(element));
    else
      *found = join(*found, element);
  }
  return known;
}

}  // namespace

std::vector<std::string> kept_notes(const Cluster& known, const Cluster& more) {
  std::vector<std::string> notes;
  for (const NodeClass& told : more.classes) {
    const NodeClass* const own = known.find_class(told.name);
    if (own == nullptr || told.calibration.state != Calibrated::no) continue;
    if (own->nodes > 0 && own->nodes != told.nodes)
      notes.push_back(fmt::format("class {}: nodes = {} stays as the file says; Slurm has {}",
                                  own->name, own->nodes, told.nodes));
    const bool priced = own->price_per_node_hour > 0 && told.price_per_node_hour > 0;
    if (priced &&
        (own->price_per_node_hour != told.price_per_node_hour || own->currency != told.currency))
      notes.push_back(fmt::format(
          "class {}: a price of {:g} {} stays as the file says; Slurm bills {:g} {}", own->name,
          own->price_per_node_hour, own->currency, told.price_per_node_hour, told.currency));
  }
  return notes;
}

Cluster joined(const Cluster& known, const Cluster& more) {
  Cluster all = known;
  if (!more.name.empty()) all.name = more.name;
  all.classes = joined_lists(
      known.classes, more.classes,
      [](const NodeClass& a, const NodeClass& b) { return a.name == b.name; }, joined_class);
  all.levels = joined_lists(
      known.levels, more.levels,
      [](const Level& a, const Level& b) {
        return a.name == b.name && a.node_class == b.node_class;
      },
      joined_level, [&](Level level) { return with_wiring(known, std::move(level)); });
  std::stable_sort(all.levels.begin(), all.levels.end(), [](const Level& a, const Level& b) {
    const auto width = [](const Level& level) {
      return std::pair(static_cast<std::uint64_t>(level.nodes) - 1,  // 0 = any number comes last
                       static_cast<std::uint64_t>(level.ranks) - 1);
    };
    return width(a) < width(b);
  });
  if (!more.storage.writes.empty()) all.storage = more.storage;
  all.startup.starts = joined_lists(
      known.startup.starts, more.startup.starts,
      [](const StartTime& a, const StartTime& b) { return a.ranks == b.ranks; },
      [](const StartTime&, const StartTime& newer) { return newer; });
  std::sort(all.startup.starts.begin(), all.startup.starts.end(),
            [](const StartTime& a, const StartTime& b) { return a.ranks < b.ranks; });
  if (!more.scheduler.kind.empty()) {
    all.scheduler = more.scheduler;
    keep(known.scheduler.requeue_delay_seconds, all.scheduler.requeue_delay_seconds, 0.0);
    for (SchedulerPartition& partition : all.scheduler.partitions)
      for (const SchedulerPartition& one : known.scheduler.partitions)
        if (one.name == partition.name) partition = joined_partition(one, partition);
  }
  return all;
}

}  // namespace t3d
