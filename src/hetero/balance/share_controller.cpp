#include "hetero/balance/share_controller.hpp"

#include "hetero/balance/kinds.hpp"

namespace t3d {

std::unique_ptr<ShareController> make_share_controller(const BalanceOptions& options,
                                                       const ShareLimits& limits,
                                                       PossibleShares possible) {
  switch (options.kind) {
    case BalanceKind::off: return nullptr;
    case BalanceKind::lbbsp_analytic: return make_lbbsp_analytic(limits, std::move(possible));
    case BalanceKind::lbbsp_numeric:
      return make_lbbsp_numeric(options, limits, std::move(possible));
    case BalanceKind::model: return make_model_controller(options, limits, std::move(possible));
  }
  return nullptr;
}

}  // namespace t3d
