#include "hetero/balance/replanner.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "core/robust.hpp"

namespace t3d {
namespace {

/// Steps between two questions to the planner: batch and token widths, which cost nothing, go
/// first. At least so many reports of this plan must be there.
constexpr index_t kBetween = 20;
constexpr std::size_t kLooks = 5;
/// The last ones, from which is learned how fast ranks are that lose their work by the next plan.
constexpr std::size_t kLastLooks = 3;
/// Another shape must be predicted to be faster by this: the prediction of a shape that was never
/// measured is that uncertain. Its change costs several steps: buffers and groups are made anew.
constexpr double kShapeGain = 0.1, kShapePrice = 3;

/// Seconds of each class of operators, in the order of WorkClass.
std::array<double, kWorkClasses> seconds_of(const RankTimes& times, bool crowded) {
  const double scale = crowded && times.own > 0 && times.cpu > 0 ? times.cpu / times.own : 1;
  return {scale * times.matmul, scale * times.attention, scale * times.whole,
          scale * (times.other - times.whole)};
}

}  // namespace

Replanner::Replanner(const BalanceOptions& options, PlanRequest request, Speeds known,
                     RankFacts facts)
    : options_(options),
      request_(std::move(request)),
      known_(std::move(known)),
      facts_(std::move(facts)),
      replicas_open_(!request_.replicas),
      cuboid_open_(request_.cuboids.empty()) {}

void Replanner::learn() {
  if (looked_at_ && looks_.size() >= kLastLooks) known_ = measured(*looked_at_, kLastLooks);
  looks_.clear();
  looked_at_.reset();
}

void Replanner::restart() {
  learn();
  rental_.restart();
  better_.reset();
}

void Replanner::taken() {
  restart();
  if (trial_) trial_->begun = true;
}

void Replanner::keep_shape() {
  restart();
  trial_.reset();
  replicas_open_ = cuboid_open_ = false;
}

// The curves of before keep their form; their height is what the steps measured. A class in which a
// rank has no work under this plan keeps what is known of it.
Speeds Replanner::measured(const Plan& plan, std::size_t looks) const {
  Speeds speeds = known_;
  const MeshShape mesh = plan.mesh();
  const std::vector<int> active = plan.active();
  for (std::size_t number = 0; number < active.size(); ++number) {
    const auto rank = static_cast<std::size_t>(active[number]);
    const StepWork work = step_work(plan, mesh.coord_of(static_cast<int>(number)));
    for (std::size_t kind = 0; kind < kWorkClasses; ++kind) {
      std::vector<double> seconds;
      for (std::size_t at = looks_.size() - looks; at < looks_.size(); ++at)
        seconds.push_back(seconds_of(looks_[at][rank], facts_.crowded[rank])[kind]);
      const double done = work_of(work, static_cast<WorkClass>(kind));
      const double middle = median_of(seconds);
      if (done <= 0 || middle <= 0) continue;
      TimeCurve& curve = speeds.ranks[rank].curves[kind];
      if (curve.empty())
        curve = TimeCurve::of_rate(done / middle);
      else
        curve.scale(middle / curve.seconds(done));
    }
    speeds.ranks[rank].free_bytes = facts_.room_bytes[rank];
  }
  return speeds;
}

// Over fewer or more replicas only the mean stays what it was, and leaves stay where they are.
PlanRequest Replanner::request_for(const Plan& plan, bool shape_open) const {
  PlanRequest request = request_;
  request.recipe.base = plan;
  request.recipe.sequences = plan.sequences();
  // Exchanges take up to 60 ms; a look must stay below 0.5 % of the steps between two.
  constexpr double kLongStepSeconds = 0.6;
  request.exchanges &= step_seconds().first >= kLongStepSeconds;
  const bool is_mean = plan.aggregate.method == AggregateMethod::mean;
  request.replicas.reset();
  request.cuboids.clear();
  if (!shape_open || !replicas_open_ || !is_mean) request.replicas = std::ssize(plan.replicas);
  if (!shape_open || !cuboid_open_)
    for (const ReplicaPlan& replica : plan.replicas) request.cuboids.push_back(replica.cuboid);
  return request;
}

bool Replanner::shape_is_open(const Plan& plan) const {
  if (plan.leaves_per_replica() > 1) return false;
  return cuboid_open_ || (replicas_open_ && plan.aggregate.method == AggregateMethod::mean);
}

std::pair<double, double> Replanner::step_seconds() const {
  std::vector<double> steps;
  for (const std::vector<RankTimes>& look : looks_) {
    double slowest = 0;
    for (const RankTimes& rank : look) slowest = std::max(slowest, rank.step);
    steps.push_back(slowest);
  }
  return {median_of(steps), median_error_of(steps)};
}

void Replanner::consider(const Plan& plan, const StepSeconds& now, const Speeds& speeds,
                         bool shape_open, double price_seconds) {
  try {
    const PlanRequest request = request_for(plan, shape_open);
    PlanChoice choice = shape_open ? plan_job(request, speeds) : plan_shape(request, speeds);
    const double part = 1 - choice.predicted.step / now.step;
    const double needed = shape_open ? kShapeGain : options_.min_gain;
    if (choice.plan == plan)
      return keep(Kept::none_better, "the planner finds none that is predicted to be faster");
    if (part < needed)
      return keep(Kept::gains_little, fmt::format("the best other one would gain {:.2g} %, {:.2g} "
                                                  "% are needed",
                                                  100 * part, 100 * needed));
    const double measured = step_seconds().first;
    const double loss = part * (measured > 0 ? measured : now.step);
    // Another shape than the one of before has to be clearly better than this one, too.
    if (better_ && loss < loss_seconds_ + options_.min_gain * now.step) return;
    loss_seconds_ = loss;
    price_ = shape_open && choice.plan.mesh().describe() != plan.mesh().describe()
                 ? kShapePrice * price_seconds
                 : price_seconds;
    reason_ = fmt::format("{:.4g} s a step predicted instead of {:.4g} s", choice.predicted.step,
                          now.step);
    better_ = std::move(choice.plan);
    keep(Kept::not_paid, reason_ + fmt::format(" by another one; the change costs {:.3g} s, and is "
                                               "made when so much has been lost",
                                               price_));
  } catch (const Error& error) {  // memory that is short now: the present plan has its place
    keep(Kept::no_memory, fmt::format("there is no other one: {}", error.what()));
  }
}

void Replanner::keep(Kept why, std::string text) {
  if (keeps_.first == Kept::no || why == Kept::not_paid) keeps_ = {why, std::move(text)};
}

void Replanner::tell_kept() {
  const auto [why, text] = std::exchange(keeps_, {});
  if (why != told_ && why != Kept::no) kept_ = "the plan stays: " + text;
  told_ = why;
}

void Replanner::look(const Plan& plan, double price_seconds) {
  better_.reset();
  const Speeds speeds = measured(plan);
  const StepSeconds now = predict_step(plan, speeds);
  if (now.step - now.bound >= options_.min_gain * now.step) {
    if (can_replan(plan)) consider(plan, now, speeds, false, price_seconds);
    if (shape_is_open(plan)) consider(plan, now, speeds, true, price_seconds);
  }
  if (!better_) rental_.restart();
}

// Noise alone must not undo a change: two standard errors, and what a change must gain at least.
std::optional<Plan> Replanner::judge(const Plan& plan) {
  const Trial trial = *std::exchange(trial_, std::nullopt);
  const auto [seconds, error] = step_seconds();
  const double noise = std::sqrt(error * error + trial.before_error * trial.before_error);
  const double limit = (1 + options_.min_gain) * trial.before_seconds + 2 * noise;
  if (trial.before_seconds <= 0 || seconds <= limit || trial.before.same_parameters(plan)) {
    next_hold_ = kFirstHold;
    return std::nullopt;
  }
  reason_ = fmt::format("taken back: {:.4g} s a step instead of {:.4g} s before", seconds,
                        trial.before_seconds);
  hold_ = next_hold_;
  next_hold_ *= 2;
  restart();
  return trial.before;
}

std::optional<Plan> Replanner::observe(const StepReport& report, const Plan& plan,
                                       double price_seconds) {
  if (options_.kind != BalanceKind::model || !report.measures_plan()) return std::nullopt;
  const index_t step = report.measured.step;
  if (looks_.empty()) {
    last_question_ = last_step_ = step;
    looked_at_ = plan;
  }
  const auto steps = static_cast<double>(std::max<index_t>(1, step - last_step_));
  last_step_ = step;
  looks_.push_back(report.times);
  if (std::ssize(looks_) > kBetween) looks_.erase(looks_.begin());
  if (step - last_question_ + 1 >= kBetween && looks_.size() >= kLooks) {
    last_question_ = step + 1;
    if (trial_ && trial_->begun)
      if (auto before = judge(plan)) return before;
    if (hold_ > 0) {
      --hold_;
      keep(Kept::on_hold, "a change was taken back, and the next question waits");
    } else {
      look(plan, price_seconds);
    }
    tell_kept();
  }
  if (!better_ || !rental_.observe(steps * loss_seconds_, 0, price_)) return std::nullopt;
  reason_ += fmt::format("; lost so far {:.3g} s, the change costs {:.3g} s",
                         rental_.regret_seconds(), price_);
  const auto [seconds, error] = step_seconds();
  trial_ = Trial{plan, seconds, error, false};
  Plan next = std::move(*better_);
  restart();
  return next;
}

bool can_replan(const Plan& plan) {
  const bool whole = plan.optimizer == OptimizerKind::muon;
  return plan.leaves_per_replica() == 1 &&
         std::any_of(plan.replicas.begin(), plan.replicas.end(), [&](const ReplicaPlan& replica) {
           const auto& [p, q, r] = replica.cuboid;
           return q * r > 1 || (whole && p > 1);
         });
}

}  // namespace t3d
