#include "hetero/cost/traffic.hpp"

#include <algorithm>

#include "comm/cost.hpp"
#include "hetero/cost/layer_traffic.hpp"
#include "hetero/cost/update_traffic.hpp"
#include "ops/aggregate_args.hpp"

namespace t3d {
namespace {

/// How often the micro-batches of a step gather a bucket.
index_t gathers(const Plan& plan, index_t uses, index_t micros) {
  return plan.keep_weights ? std::min<index_t>(1, micros) : uses * micros;
}

bool is_gathered(const RankView& rank, const BucketSize& size) {
  const DType type = size.matrices ? rank.activation : rank.accumulator;
  return size.members > 1 || type != rank.accumulator;
}

void add_weights(const RankView& rank, index_t micros, index_t reductions, bool training,
                 TrafficTable& traffic) {
  for (const BucketSize& size : bucket_sizes(rank)) {
    const index_t uses = training ? size.uses : size.evaluation_uses;
    if (is_gathered(rank, size))
      traffic.add(Verb::all_gather, size.group, size.gather,
                  size.copies * gathers(rank.plan, uses, micros));
    traffic.add(Verb::reduce_scatter, size.group,
                (size.count - size.shard) * size_of(rank.accumulator), size.trained * reductions);
  }
}

}  // namespace

void TrafficTable::add(const TrafficTable& other, index_t times) {
  for (std::size_t verb = 0; verb < kVerbs; ++verb)
    for (std::size_t group = 0; group < kGroups; ++group)
      for (std::size_t size = 0; size < 2; ++size) {
        const TrafficCalls& calls = other.calls_[verb][group][size];
        calls_[verb][group][size].calls += times * calls.calls;
        calls_[verb][group][size].bytes += times * calls.bytes;
      }
}

index_t TrafficTable::total() const {
  index_t sum = 0;
  for (std::size_t group = 0; group < kGroups; ++group) sum += on(static_cast<Group>(group));
  return sum;
}

index_t TrafficTable::on(Group group) const {
  index_t sum = 0;
  for (std::size_t verb = 0; verb < kVerbs; ++verb) sum += bytes(static_cast<Verb>(verb), group);
  return sum;
}

Ledger TrafficTable::ledger() const {
  Ledger ledger;
  for (std::size_t verb = 0; verb < kVerbs; ++verb)
    for (std::size_t group = 0; group < kGroups; ++group) {
      const index_t sent = bytes(static_cast<Verb>(verb), static_cast<Group>(group));
      if (sent != 0)
        ledger.count(static_cast<Verb>(verb), std::string(name_of(static_cast<Group>(group))),
                     sent);
    }
  return ledger;
}

TrafficTable step_traffic(const Plan& plan, const Coord& coord, const CostMemoPtr& memo) {
  const RankView rank(plan, coord, memo);
  TrafficTable traffic = idle_traffic(plan, rank.world_rank());  // the report
  index_t micros = 0, last = -1;
  TrafficTable pass;  // of a micro-batch like the last one
  for (const auto& leaf : rank.cut.leaves)
    for (const index_t sequences : leaf) {
      if (sequences != last) {
        const Rows rows(rank, sequences);
        pass = {};
        add_forward(rank, rows, pass);
        add_backward(rank, rows, pass);
        add_head(rank, rows, true, pass);
        last = sequences;
      }
      traffic.add(pass, 1);
      ++micros;
    }
  add_weights(rank, micros, std::ssize(rank.cut.leaves), true, traffic);
  add_update(rank, traffic);
  return traffic;
}

TrafficTable evaluation_traffic(const Plan& plan, const Coord& coord, index_t sequences,
                                index_t micro, index_t rounds) {
  const RankView rank(plan, coord);
  TrafficTable traffic = idle_evaluation_traffic(plan, rank.world_rank());
  const index_t share = even_size(sequences, std::ssize(plan.replicas), coord.d);
  index_t micros = 0;
  for (index_t at = 0; at < share && micros < rounds; at += micro, ++micros) {
    const Rows rows(rank, std::min(micro, share - at));
    add_forward(rank, rows, traffic);
    add_head(rank, rows, false, traffic);
  }
  add_weights(rank, micros, 0, false, traffic);
  return traffic;
}

TrafficTable times_traffic(const Plan& plan) {
  TrafficTable traffic;
  traffic.add(Verb::all_gather, Group::world,
              (plan.ranks - 1) * kReportNumbers * size_of(DType::f64));
  return traffic;
}

TrafficTable idle_traffic(const Plan& plan, int world_rank) {
  TrafficTable traffic = times_traffic(plan);
  traffic.add(Verb::all_reduce, Group::world,
              all_reduce_bytes(kReportSums + summary_for_idle_ranks(plan), plan.ranks, world_rank,
                               DType::f64));
  return traffic;
}

index_t summary_for_idle_ranks(const Plan& plan) {
  if (plan.aggregate.method != AggregateMethod::adasum) return 0;
  index_t places = 0;
  for (const ReplicaPlan& replica : plan.replicas)
    places += replica.cuboid[0] * replica.cuboid[1] * replica.cuboid[2];
  if (places == plan.ranks) return 0;
  return adasum_summary::columns + std::ssize(plan.replicas) * plan.leaves_per_replica();
}

TrafficTable interruption_traffic(const Plan& plan, int world_rank) {
  TrafficTable traffic;
  traffic.add(Verb::all_reduce, Group::world,
              all_reduce_bytes(1, plan.ranks, world_rank, DType::i32));
  return traffic;
}

TrafficTable idle_evaluation_traffic(const Plan& plan, int world_rank) {
  TrafficTable traffic;
  traffic.add(Verb::all_reduce, Group::world,
              all_reduce_bytes(1, plan.ranks, world_rank, DType::f64));
  return traffic;
}

}  // namespace t3d
