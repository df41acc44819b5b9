#include "hetero/planner/slab_seconds.hpp"

#include <algorithm>

namespace t3d {
namespace {

constexpr auto kWhole = static_cast<std::size_t>(WorkClass::whole);

std::array<double, kWorkClasses> by_class(const StepWork& work) {
  std::array<double, kWorkClasses> all{};
  for (std::size_t kind = 0; kind < kWorkClasses; ++kind)
    all[kind] = work_of(work, static_cast<WorkClass>(kind));
  return all;
}

}  // namespace

StepWork LinearWork::step(double sequences) const {
  const auto whole = [&](WorkClass kind) {
    return static_cast<index_t>(of(static_cast<std::size_t>(kind), sequences));
  };
  StepWork work;
  work.matmul = whole(WorkClass::matmul);
  work.attention = whole(WorkClass::attention);
  work.whole = whole(WorkClass::whole);
  work.streamed = whole(WorkClass::streamed);
  return work;
}

std::vector<LinearWork> slab_work(const PlanRecipe& recipe, const ReplicaShape& shape) {
  const auto& [p, q, r] = shape.cuboid;
  PlanRecipe probe = recipe;
  probe.micro = 0;
  PlanShape one{{shape}, {}};
  // As many sequences as k cuts evenly.
  const auto each = static_cast<double>(r * recipe.leaves);
  one.replicas[0].sequences = p * r * recipe.leaves;
  one.replicas[0].token_speeds.clear();
  const Plan plan = build_plan(probe, one);
  std::vector<LinearWork> all;
  for (index_t j = 0; j < q; ++j)
    for (index_t k = 0; k < r; ++k) {
      const auto sum = by_class(step_work(plan, {0, 0, j, k}));
      LinearWork work{by_class(update_work(plan, {0, 0, j, k})), {}};
      for (std::size_t kind = 0; kind < kWorkClasses; ++kind)
        work.per_sequence[kind] = (sum[kind] - work.fixed[kind]) / each;
      all.push_back(work);
    }
  return all;
}

void SlabSeconds::add(std::span<const int> ranks, const std::vector<LinearWork>& work,
                      double usual) {
  struct Timed {
    Member member;
    std::array<double, kWorkClasses> seconds{};
    double sum = 0;
  };
  std::vector<Timed> all;
  for (std::size_t at = 0; at < ranks.size(); ++at) {
    Timed timed{{&speeds_.ranks[static_cast<std::size_t>(ranks[at])], &work[at]}, {}, 0};
    for (std::size_t kind = 0; kind < kWorkClasses; ++kind) {
      if (kind == kWhole) continue;
      timed.seconds[kind] = timed.member.speed->curves[kind].seconds(work[at].of(kind, usual));
      timed.sum += timed.seconds[kind];
    }
    all.push_back(timed);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Timed& a, const Timed& b) { return a.sum > b.sum; });
  std::vector<Timed> slowest;
  for (const Timed& timed : all) {
    const auto slower = [&](const Timed& other) {
      return std::equal(timed.seconds.begin(), timed.seconds.end(), other.seconds.begin(),
                        [](double own, double theirs) { return own <= theirs; });
    };
    if (std::none_of(slowest.begin(), slowest.end(), slower)) slowest.push_back(timed);
  }
  slabs_.emplace_back();
  for (const Timed& timed : slowest) slabs_.back().push_back(timed.member);
  lines_.push_back(line_of(slabs_.back()));
}

std::optional<SlabSeconds::Line> SlabSeconds::line_of(const std::vector<Member>& members) {
  if (members.size() != 1) return std::nullopt;
  const auto& [speed, work] = members.front();
  Line line;
  for (std::size_t kind = 0; kind < kWorkClasses; ++kind) {
    if (!speed->curves[kind].stated()) return std::nullopt;
    line.fixed += speed->curves[kind].seconds(work->fixed[kind]);
    line.each += speed->curves[kind].seconds(work->per_sequence[kind]);
  }
  return line;
}

double SlabSeconds::seconds(std::size_t slab, index_t sequences) const {
  if (const auto& line = lines_[slab])
    return line->fixed + static_cast<double>(sequences) * line->each;
  double sum = 0;
  for (std::size_t kind = 0; kind < kWorkClasses; ++kind) {
    if (kind == kWhole) continue;
    double most = 0;
    for (const Member& member : slabs_[slab])
      most = std::max(most, member.speed->curves[kind].seconds(
                                member.work->of(kind, static_cast<double>(sequences))));
    sum += most;
  }
  return sum;
}

}  // namespace t3d
