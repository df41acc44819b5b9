#include "forecast/forecaster.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "forecast/cluster/meeting.hpp"

namespace t3d {
namespace {

constexpr index_t kLooksOneByOne = 4;

std::size_t largest_part(const Partition& cut) {
  const std::vector<index_t> sizes = cut.sizes();
  return static_cast<std::size_t>(std::max_element(sizes.begin(), sizes.end()) - sizes.begin());
}

double own_seconds(const ForecastTerms& terms) {
  return terms.compute() + terms.meeting + terms.host;
}

}  // namespace

Forecaster::Forecaster(const Plan& plan, const JobNodes& nodes, ClusterRates& rates)
    : plan_(plan), nodes_(nodes), rates_(rates), keys_(plan) {
  if (plan.ranks > nodes.ranks())
    throw_error(ExitCode::config, "a plan of {} ranks on nodes for {}", plan.ranks, nodes.ranks());
  look_at_replicas();
}

StepForecast Forecaster::step() {
  even_ = EvenReach::of(plan_, nodes_);
  return with_messages();
}

StepForecast Forecaster::step(const AxisOrder& order) {
  even_.emplace(plan_, nodes_, order);
  return with_messages();
}

void Forecaster::look_at_replicas() {
  const bool one_class = nodes_.parts().size() == 1;
  std::map<Places, std::vector<Alike>> seen;
  index_t slot = 0;
  for (index_t d = 0; d < std::ssize(plan_.replicas); ++d) {
    std::size_t like = 0;
    if (!one_class) {
      like = look_at_replica(d, slot, seen[places_of(d, slot)]);
    } else {
      // A replica like the one before on nodes alike takes as long.
      if (d == 0 || plan_.replica(d) != plan_.replica(d - 1))
        replicas_.push_back({d, slot, compute(d, slot), {}});
      like = replicas_.size() - 1;
    }
    const auto& [p, q, r] = plan_.replica(d).cuboid;
    slot += p * q * r;
    mean_compute_ += replicas_[like].terms.compute();
  }
  looks_ = looked_at(slot);
  mean_compute_ /= static_cast<double>(plan_.replicas.size());
}

/// `alike`: with ranks at the same places of nodes. Returns one of replicas_ that computes as long.
std::size_t Forecaster::look_at_replica(index_t d, index_t slot, std::vector<Alike>& alike) {
  const auto same = std::find_if(alike.begin(), alike.end(), [&](const Alike& one) {
    return plan_.replica(replicas_[one.first].d) == plan_.replica(d);
  });
  if (same == alike.end()) {
    replicas_.push_back({d, slot, compute(d, slot), {}});
    alike.push_back({replicas_.size() - 1, replicas_.size() - 1});
    return alike.back().first;
  }
  if (same->last == same->first) {
    same->last = replicas_.size();
    replicas_.push_back(Replica(replicas_[same->first]));
  }
  replicas_[same->last].d = d;
  replicas_[same->last].slot = slot;
  return same->first;
}

Forecaster::Places Forecaster::places_of(index_t d, index_t slot) const {
  const auto& [p, q, r] = plan_.replica(d).cuboid;
  Places places;
  for (index_t at = slot; at < slot + p * q * r; ++at) {
    const JobNodes::Seat here = seat(at);
    places.emplace_back(here.node_class, here.place);
  }
  return places;
}

const Forecaster::RankOperators& Forecaster::rank_seconds(const Coord& coord,
                                                          std::size_t node_class,
                                                          const SlabKeys::Key& slab) {
  SlabKeys::Key key = slab;
  key.push_back(static_cast<index_t>(node_class));
  add_rank_key(plan_, coord, plan_.replica(coord.d).tokens.back().size(coord.i), *memo_, key);
  const auto [entry, is_new] = ranks_.try_emplace(std::move(key));
  if (!is_new) return entry->second;
  for (const OperatorCall& call : step_calls(plan_, coord, memo_)) {
    entry->second.operators[static_cast<std::size_t>(call.kind)] +=
        call.times * rates_.seconds(node_class, plan_.compute, call);
    entry->second.host += call.times * rates_.launch_seconds(node_class);
  }
  return entry->second;
}

/// Of the ranks of a slab in a step.
double Forecaster::meetings_of(index_t d) const {
  const auto& [p, q, r] = plan_.replica(d).cuboid;
  const bool lengths_count =
      std::any_of(nodes_.parts().begin(), nodes_.parts().end(),
                  [&](const JobPart& part) { return rates_.jitter(part.node_class).exponent > 0; });
  if (q * r == 1 || !lengths_count) return 0;
  const TrafficTable traffic = step_traffic(plan_, Coord{d}, memo_);
  double calls = 0;
  for (const Group group : {Group::j, Group::k})
    for (std::size_t verb = 0; verb < kVerbs; ++verb)
      for (const TrafficCalls& some : traffic.calls(static_cast<Verb>(verb), group))
        calls += static_cast<double>(some.calls);
  return calls;
}

/// Of the replica's slowest slab.
ForecastTerms Forecaster::compute(index_t d, index_t slot) {
  const auto& [p, q, r] = plan_.replica(d).cuboid;
  const bool one_class = nodes_.parts().size() == 1;
  const double meetings = meetings_of(d);
  ForecastTerms slowest;
  SlabKeys::Key before;
  for (index_t i = 0; i < p; ++i) {
    const SlabKeys::Key slab = keys_.key(d, i);
    if (one_class && slab == before) continue;
    before = slab;
    RankOperators meet;
    std::vector<std::size_t> classes;
    for (index_t at = 0; at < q * r; ++at) {
      const JobNodes::Seat here = seat(slot + i * q * r + at);
      const RankOperators& own = rank_seconds({d, i, at / r, at % r}, here.node_class, slab);
      for (std::size_t kind = 0; kind < kOperatorKinds; ++kind)
        meet.operators[kind] = std::max(meet.operators[kind], own.operators[kind]);
      meet.host = std::max(meet.host, own.host);
      if (classes.empty() || classes.back() != here.node_class) classes.push_back(here.node_class);
    }
    ForecastTerms terms;
    terms.operators = meet.operators;
    terms.host = meet.host;
    for (const std::size_t node_class : classes)
      terms.meeting = std::max(terms.meeting, meeting_seconds(rates_.jitter(node_class), q * r,
                                                              terms.compute(), meetings));
    if (own_seconds(terms) > own_seconds(slowest)) slowest = terms;
  }
  return slowest;
}

/// Replicas wait for each other where they meet: for the one whose way there is the longest.
StepForecast Forecaster::with_messages() {
  std::vector<ForecastTerms> all;
  for (Replica& replica : replicas_) {
    all.push_back(replica.terms);
    add_messages(replica, all.back());
  }
  for (const Group group : {Group::d, Group::world}) {
    const auto at = static_cast<std::size_t>(group);
    const auto seconds = [&](const ForecastTerms& terms) {
      return terms.inside[at] + terms.between[at];
    };
    const ForecastTerms slowest = *std::max_element(
        all.begin(), all.end(),
        [&](const ForecastTerms& a, const ForecastTerms& b) { return seconds(a) < seconds(b); });
    for (ForecastTerms& terms : all) {
      terms.inside[at] = slowest.inside[at];
      terms.between[at] = slowest.between[at];
    }
  }
  const ForecastTerms& worst = *std::max_element(
      all.begin(), all.end(),
      [](const ForecastTerms& a, const ForecastTerms& b) { return a.sum() < b.sum(); });
  return {worst, mean_compute_ > 0 ? worst.compute() / mean_compute_ : 1};
}

/// Of a rank in the largest slab with the largest widths; each group as far as its farthest
/// member: all wait for that one.
void Forecaster::add_messages(Replica& of, ForecastTerms& terms) {
  const ReplicaPlan& replica = plan_.replica(of.d);
  const Coord coord{of.d, static_cast<index_t>(largest_part(replica.tokens.back())),
                    static_cast<index_t>(largest_part(replica.ffn)),
                    static_cast<index_t>(largest_part(replica.hidden))};
  const auto& [p, q, r] = replica.cuboid;
  const index_t slot = of.slot + (coord.i * q + coord.j) * r + coord.k;
  double micros = 0;
  for (const auto& leaf : replica.leaves) micros += static_cast<double>(leaf.size());
  terms.cover = message_cover(plan_.aggregate.method, plan_.recompute, micros, on_gpus(of));
  const TrafficTable traffic = traffic_of(of, coord, slot);
  for (std::size_t group = 0; group < ForecastTerms::kGroups; ++group) {
    const auto over = static_cast<Group>(group);
    if (traffic.on(over) == 0) continue;
    const auto [inside, between] = slowest_reach(traffic, over, of.d);
    terms.inside[group] += inside;
    terms.between[group] += between;
  }
}

bool Forecaster::on_gpus(const Replica& of) const {
  const auto is_gpu = [&](std::size_t node_class) {
    return nodes_.cluster().classes[node_class].device != "cpu";
  };
  if (nodes_.parts().size() == 1) return is_gpu(nodes_.parts().front().node_class);
  const Places places = places_of(of.d, of.slot);
  return std::all_of(places.begin(), places.end(),
                     [&](const auto& place) { return is_gpu(place.first); });
}

/// What a rank sends depends on its number where all ranks of the job sum a few numbers.
TrafficTable Forecaster::traffic_of(Replica& of, const Coord& coord, index_t slot) {
  if (even_ && even_->rank_of(coord) != world_rank(slot)) {
    Plan placed = plan_;
    placed.place = even_->place();
    return step_traffic(placed, coord, memo_);
  }
  if (!of.traffic) of.traffic = step_traffic(plan_, coord, memo_);
  return *of.traffic;
}

/// Where cuboids do not nest in nodes, groups of one axis lie on different numbers of them. Looked
/// at are ranks all over the plan, or some of the replica where there is no closed form.
Forecaster::GroupSeconds Forecaster::slowest_reach(const TrafficTable& traffic, Group group,
                                                   index_t d) {
  const auto& [p, q, r] = plan_.replica(d).cuboid;
  const bool all = group == Group::world || group == Group::cuboid;
  GroupSeconds slowest;
  std::vector<Reach> seen;
  for (const index_t at : even_ ? looks_ : looked_at(p * q * r, all ? 1 : kLooksOneByOne)) {
    Reach reach = even_ ? even_->reach(at, group)
                        : nodes_.reach(plan_, {d, at / (q * r), at / r % q, at % r}, group);
    if (std::find(seen.begin(), seen.end(), reach) != seen.end()) continue;
    GroupSeconds own;
    for (const Reach::At& level : reach.levels)
      (level.between ? own.between : own.inside) += level_seconds(traffic, group, reach, level);
    if (own.inside + own.between > slowest.inside + slowest.between) slowest = own;
    seen.push_back(std::move(reach));
  }
  return slowest;
}

double Forecaster::level_seconds(const TrafficTable& traffic, Group group, const Reach& reach,
                                 const Reach::At& at) const {
  const double part = nodes_.oversubscribed(at.level) * static_cast<double>(at.peers) /
                      static_cast<double>(reach.peers);
  // Tables know groups of one rank on each node (calibrate): so many senders share its adapters.
  const auto together = static_cast<double>(at.between ? reach.senders : reach.groups);
  double seconds = 0;
  for (std::size_t verb = 0; verb < kVerbs; ++verb)
    for (const TrafficCalls& calls : traffic.calls(static_cast<Verb>(verb), group)) {
      if (calls.calls == 0) continue;
      const auto times = static_cast<double>(calls.calls);
      seconds += times * rates_.level(at.level).seconds(
                             static_cast<Verb>(verb), at.peers,
                             part * static_cast<double>(calls.bytes) / times, together);
    }
  return seconds;
}

}  // namespace t3d
