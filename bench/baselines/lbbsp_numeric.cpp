// LB-BSP's numerical rule. Once a window, D units go from the straggler to the leader. FAST: large
// D, short window. When the two exchange their roles, FINE: D = 1, long window. When a replica's
// time per unit jumps, FAST again. Constants and the test of a jump are ours (docs/decisions/012).
#include <algorithm>
#include <cmath>

#include "baselines/lbbsp.hpp"
#include "core/robust.hpp"
#include "hetero/balance/deal.hpp"

namespace t3d {
namespace {

constexpr double kJump = 0.2;  // of a replica's seconds per unit, from one window to the next
constexpr index_t kCoarseStep = 5, kCoarseWindow = 5, kFineWindow = 20;
constexpr double kTolerance = 0.05;  // replicas within this of each other are equal
constexpr auto kNone = static_cast<std::size_t>(-1);

class NumericController : public ShareController {
 public:
  explicit NumericController(const ShareLimits& limits) : limits_(limits) {}

  std::optional<Shares> observe(std::span<const ReplicaTimes> replicas,
                                std::span<const index_t> shares) override {
    times_.resize(replicas.size());
    for (std::size_t n = 0; n < replicas.size(); ++n)
      if (std::isfinite(replicas[n].compute_seconds))
        times_[n].push_back(replicas[n].compute_seconds);
    if (++steps_ < (fine_ ? kFineWindow : kCoarseWindow)) return std::nullopt;
    std::vector<double> now;
    for (std::vector<double>& times : times_) {
      now.push_back(median_of(times));
      times.clear();
    }
    steps_ = 0;
    std::vector<double> costs;
    for (std::size_t n = 0; n < now.size(); ++n)
      costs.push_back(now[n] / double(std::max<index_t>(shares[n], 1)));
    if (fine_ && jumped(costs)) {
      fine_ = false;
      last_leader_ = last_straggler_ = kNone;
    }
    before_ = std::move(costs);
    return move(now, shares);
  }
  void limit(const ShareLimits& limits) override { limits_ = limits; }
  [[nodiscard]] std::string reason() const override { return {}; }

 private:
  [[nodiscard]] bool jumped(const std::vector<double>& costs) const {
    for (std::size_t n = 0; n < costs.size(); ++n)
      if (std::abs(costs[n] - before_[n]) > kJump * before_[n]) return true;
    return false;
  }

  std::optional<Shares> move(const std::vector<double>& now, std::span<const index_t> shares) {
    const index_t units = fine_ ? 1 : kCoarseStep;
    std::size_t leader = kNone, straggler = kNone;
    for (std::size_t n = 0; n < now.size(); ++n) {
      // What a replica without units would take is not measured: it does not lead.
      const bool can_take = shares[n] > 0 && shares[n] + units <= most_of(limits_, n);
      const bool can_give = shares[n] - units >= std::max<index_t>(1, limits_.least);
      if (can_take && (leader == kNone || now[n] < now[leader])) leader = n;
      if (can_give && (straggler == kNone || now[n] > now[straggler])) straggler = n;
    }
    if (leader == kNone || straggler == kNone || leader == straggler ||
        now[straggler] <= now[leader] * (1 + kTolerance))
      return std::nullopt;
    // Who gave takes back: the step was too large.
    if (leader == last_straggler_ || straggler == last_leader_) fine_ = true;
    last_leader_ = leader;
    last_straggler_ = straggler;
    Shares moved(shares.begin(), shares.end());
    moved[straggler] -= units;
    moved[leader] += units;
    return moved;
  }

  ShareLimits limits_;
  std::vector<std::vector<double>> times_;  // of this window, by replica
  std::vector<double> before_;              // seconds per unit in the window before
  index_t steps_ = 0;
  bool fine_ = false;
  std::size_t last_leader_ = kNone, last_straggler_ = kNone;
};

}  // namespace

std::unique_ptr<ShareController> make_lbbsp_numeric(const ShareLimits& limits) {
  return std::make_unique<NumericController>(limits);
}

}  // namespace t3d
