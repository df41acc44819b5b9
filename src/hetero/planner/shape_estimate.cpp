#include "hetero/planner/shape_estimate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "hetero/cost/memory.hpp"
#include "hetero/cost/traffic.hpp"
#include "hetero/planner/message_seconds.hpp"

namespace t3d {
namespace {

/// Speeds within a class.
constexpr double kClass = 0.03;

/// One replica of even widths with `sequences` of a step.
Plan one_replica(const PlanRecipe& recipe, const Cuboid& cuboid, index_t sequences) {
  PlanShape shape;
  shape.replicas.emplace_back();
  shape.replicas[0].cuboid = cuboid;
  shape.replicas[0].sequences = sequences;
  return build_plan(recipe, shape);
}

StepWork difference(const StepWork& a, const StepWork& b) {
  return {a.matmul - b.matmul, a.attention - b.attention, a.whole - b.whole,
          a.streamed - b.streamed};
}

}  // namespace

std::string MeshCandidate::text() const {
  return MeshShape(std::vector<Cuboid>(static_cast<std::size_t>(replicas), cuboid)).describe();
}

std::array<index_t, 4> MeshCandidate::complexity() const {
  const auto& [p, q, r] = cuboid;
  const index_t cut = (replicas > 1) + (p > 1) + (q > 1) + (r > 1);
  return {cut, r, q, replicas};
}

ShapeEstimates::ShapeEstimates(const PlanRequest& request, const Speeds& speeds)
    : request_(request), speeds_(speeds) {
  const PlanRecipe& recipe = request.recipe;
  const StepWork all = step_work(one_replica(recipe, {1, 1, 1}, recipe.sequences), {});
  const index_t ranks = std::ssize(speeds.ranks);
  order_ = order_by_speed(
      speeds, {all.matmul / ranks, all.attention / ranks, all.whole / ranks, all.streamed / ranks});
  if (order_.ranks.empty())
    throw_error(ExitCode::config, "none of {} ranks has any speed", speeds.ranks.size());
  double fastest = 0;
  for (std::size_t at = 0; at < order_.ranks.size(); ++at) {
    if (classes_.empty() || order_.seconds[at] > (1 + kClass) * fastest) {
      classes_.emplace_back();
      fastest = order_.seconds[at];
    }
    classes_.back() = {static_cast<index_t>(at) + 1, order_.ranks[at]};
  }
  std::map<std::string, index_t> nodes;
  for (const int rank : order_.ranks) ++nodes[speeds.ranks[static_cast<std::size_t>(rank)].node];
  one_node_ = nodes.size() == 1;
  node_ranks_ = ranks;
  for (const auto& [name, members] : nodes) node_ranks_ = std::min(node_ranks_, members);
}

std::vector<index_t> ShapeEstimates::useful_ranks() const {
  std::vector<index_t> counts;
  constexpr std::size_t kMostCounts = 6;
  const std::size_t step = (classes_.size() + kMostCounts - 1) / kMostCounts;
  for (std::size_t at = 0; at < classes_.size(); at += step)
    counts.push_back(classes_[classes_.size() - 1 - at].end);
  return counts;
}

const LinkSpeed& ShapeEstimates::link(index_t span) const {
  return one_node_ || span <= node_ranks_ ? speeds_.inside : speeds_.between;
}

void ShapeEstimates::set_messages(const Plan& plan, index_t q, index_t r, Slab& slab) const {
  const auto cost = [&](bool latency) {
    Speeds links = {{}, link(q * r), link(q * r)};
    for (LinkSpeed* price : {&links.inside, &links.between})
      (latency ? price->beta_seconds_per_byte : price->alpha_seconds) = 0;
    return message_seconds(plan, {}, links, {}).activations;
  };
  slab.message_latency = cost(true);
  slab.message_seconds = cost(false) / static_cast<double>(plan.sequences());
}

const ShapeEstimates::Slab& ShapeEstimates::slab(index_t q, index_t r) {
  const auto [entry, is_new] = slabs_.try_emplace({q, r});
  Slab& slab = entry->second;
  if (!is_new) return slab;
  const PlanRecipe& recipe = request_.recipe;
  const index_t sequences = std::max(recipe.sequences * q * r / ranks(), r);
  const Plan plan = one_replica(recipe, {1, q, r}, sequences);
  const StepWork update = update_work(plan, {});
  const StepWork batch = difference(step_work(plan, {}), update);
  for (const Class& of : classes_) {
    const RankSpeed& rank = speeds_.ranks[static_cast<std::size_t>(of.rank)];
    slab.sequence_seconds.push_back(rank.seconds(batch) / static_cast<double>(sequences));
    slab.update_seconds.push_back(rank.seconds(update));
  }
  const double elements = static_cast<double>(parameters_at_rest(plan, {}));
  const double wide = static_cast<double>(size_of(accumulator_of(plan.activation())));
  slab.gradient_bytes = elements * wide;
  slab.weight_bytes =
      elements * static_cast<double>(size_of(plan.activation())) + slab.gradient_bytes;
  set_messages(plan, q, r, slab);
  return slab;
}

/// The last of the slabs to end, with whole sequences, `most` of each slab (empty: any number):
/// bisection on its time.
double ShapeEstimates::compute_seconds(const Slab& slab, const MeshCandidate& candidate,
                                       std::span<const index_t> most) const {
  const auto& [p, q, r] = candidate.cuboid;
  const index_t slabs = candidate.replicas * p;
  const auto total = static_cast<double>(request_.recipe.sequences);
  struct Alike {
    index_t begin = 0, end = 0;  // slabs
    double seconds = 0;          // per sequence
  };
  std::vector<Alike> groups;
  double update = 0, rate = 0;
  index_t begin = 0;
  for (std::size_t at = 0; at < classes_.size() && begin < slabs; ++at) {
    const index_t end = std::min(classes_[at].end / (q * r), slabs);
    if (end == begin) continue;
    groups.push_back({begin, end, slab.sequence_seconds[at]});
    rate += static_cast<double>(end - begin) / slab.sequence_seconds[at];
    update = slab.update_seconds[at] / static_cast<double>(p);
    begin = end;
  }
  const auto done_by = [&](double time) {
    double done = 0;
    for (const Alike& group : groups) {
      const double each = std::floor(time / group.seconds * (1 + 1e-9));
      if (most.empty()) done += static_cast<double>(group.end - group.begin) * each;
      for (index_t at = group.begin; at < group.end && !most.empty(); ++at)
        done += std::min(each, static_cast<double>(most[static_cast<std::size_t>(at)]));
    }
    return done;
  };
  double early = total / rate, late = 2 * early + groups.front().seconds;
  while (done_by(late) < total) early = std::exchange(late, 2 * late);
  constexpr int kHalvings = 20;
  for (int step = 0; step < kHalvings; ++step) {
    const double middle = (early + late) / 2;
    (done_by(middle) >= total ? late : early) = middle;
  }
  return late + update;
}

double ShapeEstimates::seconds(const MeshCandidate& candidate, std::span<const index_t> most) {
  const auto& [p, q, r] = candidate.cuboid;
  const Slab& one = slab(q, r);
  const double compute = compute_seconds(one, candidate, most);
  const auto part = [](index_t n) { return static_cast<double>(n - 1) / static_cast<double>(n); };
  const double sequences =
      static_cast<double>(request_.recipe.sequences) / static_cast<double>(candidate.replicas * p);
  const double weights =
      part(p) * one.weight_bytes * link(p * q * r).beta_seconds_per_byte - compute;
  const double pieces = static_cast<double>(
      request_.recipe.base.aggregate.method == AggregateMethod::adasum ? request_.recipe.leaves + 1
                                                                       : 2);
  const double update =
      pieces * part(candidate.replicas) * one.gradient_bytes / static_cast<double>(p) *
      link(candidate.ranks() * (candidate.replicas > 1 ? 1 : 0)).beta_seconds_per_byte;
  return compute + one.message_latency + sequences * one.message_seconds + std::max(0.0, weights) +
         update;
}

}  // namespace t3d
