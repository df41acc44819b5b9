// LB-BSP's analytic rule: x_i = X v_i / sum_j v_j, of the speeds predicted for the next step; as
// integers by exact min-max, so that the sum and the limits are kept.
#include <fmt/format.h>

#include <algorithm>

#include "baselines/lbbsp.hpp"
#include "hetero/balance/deal.hpp"

namespace t3d {
namespace {

class AnalyticController : public ShareController {
 public:
  explicit AnalyticController(const ShareLimits& limits) : limits_(limits) {}

  std::optional<Shares> observe(std::span<const ReplicaTimes> replicas,
                                std::span<const index_t> shares) override {
    for (std::size_t n = 0; n < replicas.size(); ++n) {
      if (replicas[n].predicted_speed > 0 || shares[n] == 0) continue;
      reason_ = "no prediction of every replica's speed yet";
      return std::nullopt;
    }
    Shares dealt = deal(replicas.size(), limits_, [&](std::size_t n, index_t units) {
      return double(units) / replicas[n].predicted_speed;
    });
    if (std::equal(dealt.begin(), dealt.end(), shares.begin())) {
      reason_ = "shares are in proportion to the predicted speeds";
      return std::nullopt;
    }
    reason_ = fmt::format("{} units follow the predicted speeds", units_moved(shares, dealt));
    return dealt;
  }
  [[nodiscard]] std::string reason() const override { return reason_; }

 private:
  ShareLimits limits_;
  std::string reason_;
};

}  // namespace

std::unique_ptr<ShareController> make_lbbsp_analytic(const ShareLimits& limits) {
  return std::make_unique<AnalyticController>(limits);
}

}  // namespace t3d
