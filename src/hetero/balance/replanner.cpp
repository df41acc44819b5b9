#include "hetero/balance/replanner.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "hetero/robust.hpp"

namespace t3d {
namespace {

/// Looks between two questions to the planner: batch and token widths, which cost nothing, go
/// first.
constexpr index_t kBetween = 20;

/// Seconds of each class of operators, in the order of WorkClass. Newton-Schulz runs between the
/// steps' products and is part of `other`.
std::array<double, kWorkClasses> seconds_of(const RankTimes& times, const StepWork& work,
                                            bool crowded) {
  const double scale = crowded && times.own > 0 && times.cpu > 0 ? times.cpu / times.own : 1;
  const double other = scale * times.other;
  return {scale * times.matmul, scale * times.attention, work.whole > 0 ? other / 2 : 0,
          work.whole > 0 ? other / 2 : other};
}

}  // namespace

Replanner::Replanner(const BalanceOptions& options, PlanRequest request, Speeds known,
                     RankFacts facts)
    : options_(options),
      request_(std::move(request)),
      known_(std::move(known)),
      facts_(std::move(facts)) {}

void Replanner::restart() {
  looks_.clear();
  since_look_ = 0;
  rental_.restart();
  better_.reset();
}

// A class in which a rank has no work under this plan keeps what is known of it.
Speeds Replanner::measured(const Plan& plan) const {
  Speeds speeds = known_;
  const MeshShape mesh = plan.mesh();
  const std::vector<int> active = plan.active();
  for (std::size_t number = 0; number < active.size(); ++number) {
    const auto rank = static_cast<std::size_t>(active[number]);
    const StepWork work = step_work(plan, mesh.coord_of(static_cast<int>(number)));
    for (std::size_t kind = 0; kind < kWorkClasses; ++kind) {
      std::vector<double> seconds;
      for (const std::vector<RankTimes>& look : looks_)
        seconds.push_back(seconds_of(look[rank], work, facts_.crowded[rank])[kind]);
      const double done = work_of(work, static_cast<WorkClass>(kind));
      const double middle = median_of(seconds);
      if (done > 0 && middle > 0)
        speeds.ranks[rank].curves[kind] = TimeCurve::of_rate(done / middle);
    }
    speeds.ranks[rank].free_bytes = facts_.room_bytes[rank];
  }
  return speeds;
}

void Replanner::look(const Plan& plan) {
  better_.reset();
  const Speeds speeds = measured(plan);
  const double now = predict_step(plan, speeds).step;
  try {
    const PlanChoice choice = plan_shape(request_, speeds);
    const double gain = now - choice.predicted.step;
    if (choice.plan == plan || gain < options_.min_gain * now) return;
    better_ = choice.plan;
    loss_seconds_ = gain;
    reason_ =
        fmt::format("{:.4g} s a step predicted instead of {:.4g} s", choice.predicted.step, now);
  } catch (const Error&) {  // memory that is short now: the present plan has its place
  }
}

std::optional<Plan> Replanner::observe(const StepReport& report, const Plan& plan,
                                       double price_seconds) {
  if (options_.kind != BalanceKind::model || report.times.empty() || report.measured.first ||
      report.measured.slabs != slab_sequences(plan))
    return std::nullopt;
  looks_.push_back(report.times);
  if (std::ssize(looks_) > kBetween) looks_.erase(looks_.begin());
  if (++since_look_ >= kBetween) {
    since_look_ = 0;
    look(plan);
  }
  if (!better_ || !rental_.observe(loss_seconds_, 0, price_seconds)) return std::nullopt;
  reason_ += fmt::format("; lost so far {:.3g} s, the change costs {:.3g} s",
                         rental_.regret_seconds(), price_seconds);
  Plan next = std::move(*better_);
  restart();
  return next;
}

}  // namespace t3d
