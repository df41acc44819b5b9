// Ours: exact min-max shares of measured models (share_models.hpp). A change must pay more than
// what noise pretends, several times in a row; then it is tried for a window, and taken back if the
// step became longer.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/portable_math.hpp"
#include "core/robust.hpp"
#include "hetero/balance/deal.hpp"
#include "hetero/balance/share_models.hpp"

namespace t3d {
namespace {

constexpr index_t kMemoryWindows = 10;  // a change so long ago is not what a new one reverses

class ModelController : public ShareController {
 public:
  ModelController(const BalanceOptions& options, const ShareLimits& limits, PossibleShares possible)
      : options_(options), limits_(limits), possible_(std::move(possible)), models_(options) {}

  std::optional<Shares> observe(std::span<const ReplicaTimes> replicas,
                                std::span<const index_t> shares) override;
  void limit(const ShareLimits& limits) override;
  void drop_proposal() override;
  [[nodiscard]] std::string reason() const override { return reason_; }

 private:
  /// A change that is being tried.
  struct Trial {
    Shares before, after;
    double median = 0, error = 0;  // of the steps before it
    std::vector<double> steps;     // since
  };

  void measure(std::span<const ReplicaTimes> replicas, std::span<const index_t> shares);
  [[nodiscard]] bool must_wait();
  struct Slowest {
    std::size_t replica = 0;
    double seconds = -1;
  };
  [[nodiscard]] Slowest slowest(std::span<const index_t> shares) const;
  [[nodiscard]] double needed_gain(std::span<const index_t> shares, const Slowest& last) const;
  [[nodiscard]] std::optional<Shares> better(std::span<const index_t> shares);
  [[nodiscard]] bool confirmed(const Shares& proposal, std::span<const index_t> shares);
  [[nodiscard]] bool reverses(const Shares& proposal, std::span<const index_t> shares) const;
  [[nodiscard]] Shares try_out(const Shares& proposal, std::span<const index_t> shares);
  [[nodiscard]] std::optional<Shares> end_trial(std::span<const index_t> shares);

  BalanceOptions options_;
  ShareLimits limits_;
  PossibleShares possible_;
  ShareModels models_;
  double now_seconds_ = 0;
  std::vector<double> steps_;  // the last ones' seconds, on which a change is decided
  Shares proposal_;            // of the last evaluation; empty = none
  index_t agreed_ = 0;         // evaluations in a row
  Shares last_change_;         // units each replica got
  index_t since_change_ = 0;   // steps
  std::optional<Trial> trial_;
  index_t hold_ = 0, next_hold_ = 0;  // steps without changes after a roll-back
  std::string reason_;
};

std::optional<Shares> ModelController::observe(std::span<const ReplicaTimes> replicas,
                                               std::span<const index_t> shares) {
  measure(replicas, shares);
  if (trial_ && std::ssize(trial_->steps) >= options_.window)
    if (auto back = end_trial(shares)) return back;
  std::optional<Shares> proposal;
  if (!must_wait()) proposal = better(shares);
  if (!proposal) {
    agreed_ = 0;
    proposal_.clear();
    return std::nullopt;
  }
  if (!confirmed(*proposal, shares)) return std::nullopt;
  return try_out(*proposal, shares);
}

void ModelController::limit(const ShareLimits& limits) {
  limits_ = limits;
  drop_proposal();
}

void ModelController::drop_proposal() {
  trial_.reset();
  last_change_.clear();
  agreed_ = 0;
  proposal_.clear();
}

void ModelController::measure(std::span<const ReplicaTimes> replicas,
                              std::span<const index_t> shares) {
  double step = 0;
  for (const ReplicaTimes& replica : replicas)
    if (std::isfinite(replica.compute_seconds)) step = std::max(step, replica.compute_seconds);
  now_seconds_ += step;
  ++since_change_;
  models_.observe(replicas, shares, now_seconds_);
  if (std::ssize(steps_) == options_.window / 2 + options_.confirm) steps_.erase(steps_.begin());
  steps_.push_back(step);
  if (!trial_) return;
  if (std::equal(shares.begin(), shares.end(), trial_->after.begin(), trial_->after.end()))
    trial_->steps.push_back(step);
  else
    trial_.reset();  // somebody else changed them
}

bool ModelController::must_wait() {
  if (hold_ > 0) {
    --hold_;
    reason_ = "no change soon after a roll-back";
  } else if (!models_.ready()) {
    reason_ = "too few steps measured";
  } else if (models_.correlated()) {
    reason_ = "many replicas changed together: no other shares help";
  } else {
    return false;
  }
  return true;
}

ModelController::Slowest ModelController::slowest(std::span<const index_t> shares) const {
  Slowest last;
  for (std::size_t n = 0; n < shares.size(); ++n)
    if (const double seconds = models_.seconds(n, double(shares[n])); seconds > last.seconds)
      last = {n, seconds};
  return last;
}

double ModelController::needed_gain(std::span<const index_t> shares, const Slowest& last) const {
  // The largest of n equal estimates exceeds their mean by about sqrt(2 ln n) standard errors: what
  // noise alone promises. Two more are asked for.
  const double n = double(std::max<std::size_t>(shares.size(), 2));
  const double errors = 2 + std::sqrt(2 * portable::natural_log(n));
  return std::max(options_.min_gain * last.seconds,
                  errors * models_.error(last.replica, double(shares[last.replica])));
}

std::optional<Shares> ModelController::better(std::span<const index_t> shares) {
  const Slowest last = slowest(shares);
  const double needed = needed_gain(shares, last);
  // Nearly always the bound says so already, and nothing is solved.
  double gain = last.seconds - models_.bound(limits_.total);
  std::optional<Shares> proposal;
  if (gain >= needed) {
    proposal = models_.equal(limits_.total)
                   ? deal_evenly(shares.size(), limits_)
                   : deal(shares.size(), limits_, [&](std::size_t n, index_t units) {
                       return models_.seconds(n, double(units));
                     });
    proposal = nearest(possible_, std::move(*proposal));
    gain = last.seconds - slowest(*proposal).seconds;
  }
  reason_ = fmt::format(
      "slowest is replica {}: {:.4g} s; other shares would gain {}{:.2g} s, {:.2g} "
      "s needed",
      last.replica, last.seconds, proposal ? "" : "at most ", gain, needed);
  const RegimeTracker& tracker = models_.tracker(last.replica);
  if (tracker.regime() >= Regime::persistent)
    reason_ += fmt::format("; it is {}: {:.0f} % slower than it was", tracker.regime(),
                           100 * tracker.slower_by());
  if (gain < needed) proposal.reset();
  return proposal;
}

bool ModelController::confirmed(const Shares& proposal, std::span<const index_t> shares) {
  // The same answer: what was proposed last time would still pay.
  const Slowest last = slowest(shares);
  const bool same =
      !proposal_.empty() && last.seconds - slowest(proposal_).seconds >= needed_gain(shares, last);
  agreed_ = same ? agreed_ + 1 : 1;
  proposal_ = proposal;
  return agreed_ >= options_.confirm && !trial_;
}

bool ModelController::reverses(const Shares& proposal, std::span<const index_t> shares) const {
  if (since_change_ > kMemoryWindows * options_.window) return false;  // no oscillation, news
  index_t along = 0, last = 0, next = 0;
  for (std::size_t n = 0; n < last_change_.size(); ++n) {
    const index_t change = proposal[n] - shares[n];
    along += change * last_change_[n];
    last += last_change_[n] * last_change_[n];
    next += change * change;
  }
  return 2 * along < -last && next <= 4 * last;  // takes back most of it, and is no larger affair
}

Shares ModelController::try_out(const Shares& proposal, std::span<const index_t> shares) {
  Shares half = nearest(possible_, halfway(shares, proposal));
  const bool same = std::equal(half.begin(), half.end(), shares.begin());
  const bool back = !same && reverses(proposal, shares);
  trial_.emplace();
  trial_->before.assign(shares.begin(), shares.end());
  trial_->after = back ? std::move(half) : proposal;
  trial_->median = median_of(steps_);
  trial_->error = median_error(mad_of(steps_, trial_->median), steps_.size());
  last_change_.resize(shares.size());
  for (std::size_t n = 0; n < shares.size(); ++n) last_change_[n] = trial_->after[n] - shares[n];
  since_change_ = 0;
  agreed_ = 0;
  proposal_.clear();
  reason_ += fmt::format("; {} units move{}", units_moved(shares, trial_->after),
                         back ? " (half: this reverses the last change)" : "");
  return trial_->after;
}

std::optional<Shares> ModelController::end_trial(std::span<const index_t> shares) {
  const Trial trial = std::move(*trial_);
  trial_.reset();
  const double median = median_of(trial.steps);
  const double error = median_error(mad_of(trial.steps, median), trial.steps.size());
  // Only a replica that got more units can have become slower by the change.
  const std::size_t last = slowest(shares).replica;
  const bool worse =
      median - trial.median > 2 * std::sqrt(error * error + trial.error * trial.error) &&
      trial.after[last] > trial.before[last];
  if (!worse) {
    next_hold_ = 0;
    return std::nullopt;
  }
  next_hold_ = std::clamp(2 * next_hold_, 4 * options_.window, 64 * options_.window);
  hold_ = next_hold_;
  drop_proposal();
  reason_ = fmt::format("roll-back: the step took {:.4g} s and takes {:.4g} s since the change",
                        trial.median, median);
  return trial.before;
}

}  // namespace

std::unique_ptr<ShareController> make_model_controller(const BalanceOptions& options,
                                                       const ShareLimits& limits,
                                                       PossibleShares possible) {
  return std::make_unique<ModelController>(options, limits, std::move(possible));
}

}  // namespace t3d
