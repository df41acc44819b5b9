// LB-BSP's analytic rule: x_i = X v_i / sum_j v_j, of the speeds predicted for the next step; as
// integers by exact min-max, so that the sum and the limits are kept.
#include <fmt/format.h>

#include <algorithm>

#include "hetero/balance/deal.hpp"
#include "hetero/balance/kinds.hpp"

namespace t3d {
namespace {

class AnalyticController : public ShareController {
 public:
  AnalyticController(const ShareLimits& limits, PossibleShares possible)
      : limits_(limits), possible_(std::move(possible)) {}

  std::optional<Shares> observe(std::span<const ReplicaTimes> replicas,
                                std::span<const index_t> shares) override {
    for (std::size_t n = 0; n < replicas.size(); ++n) {
      if (replicas[n].predicted_speed > 0 || shares[n] == 0) continue;
      reason_ = "no prediction of every replica's speed yet";
      return std::nullopt;
    }
    Shares dealt =
        nearest(possible_, deal(replicas.size(), limits_, [&](std::size_t n, index_t units) {
                  return double(units) / replicas[n].predicted_speed;
                }));
    if (std::equal(dealt.begin(), dealt.end(), shares.begin())) {
      reason_ = "shares are in proportion to the predicted speeds";
      return std::nullopt;
    }
    reason_ = fmt::format("{} units follow the predicted speeds", units_moved(shares, dealt));
    return dealt;
  }
  void limit(const ShareLimits& limits) override { limits_ = limits; }
  [[nodiscard]] std::string reason() const override { return reason_; }

 private:
  ShareLimits limits_;
  PossibleShares possible_;
  std::string reason_;
};

}  // namespace

std::unique_ptr<ShareController> make_lbbsp_analytic(const ShareLimits& limits,
                                                     PossibleShares possible) {
  return std::make_unique<AnalyticController>(limits, std::move(possible));
}

}  // namespace t3d
