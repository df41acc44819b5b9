// LB-BSP's analytic rule: x_i = X v_i / sum_j v_j, of the speeds predicted for the next step; as
// integers by exact min-max, so that the sum and the limits are kept.
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
    Shares dealt = deal(replicas.size(), limits_, [&](std::size_t n, index_t units) {
      return double(units) / replicas[n].predicted_speed;
    });
    if (std::equal(dealt.begin(), dealt.end(), shares.begin())) return std::nullopt;
    return dealt;
  }
  void limit(const ShareLimits& limits) override { limits_ = limits; }
  [[nodiscard]] std::string reason() const override { return {}; }

 private:
  ShareLimits limits_;
};

}  // namespace

std::unique_ptr<ShareController> make_lbbsp_analytic(const ShareLimits& limits) {
  return std::make_unique<AnalyticController>(limits);
}

}  // namespace t3d
