// The kinds of share controllers, for make_share_controller.
#pragma once
#include "hetero/balance/share_controller.hpp"

namespace t3d {

/// Shares in proportion to predicted speeds, anew after every step (LB-BSP for CPU clusters).
[[nodiscard]] std::unique_ptr<ShareController> make_lbbsp_analytic(const ShareLimits& limits,
                                                                   PossibleShares possible);

/// A few units from the slowest replica to the fastest, once a window (LB-BSP for GPU clusters).
[[nodiscard]] std::unique_ptr<ShareController> make_lbbsp_numeric(const BalanceOptions& options,
                                                                  const ShareLimits& limits,
                                                                  PossibleShares possible);

/// Exact min-max shares of measured models, changed when that pays (ours).
[[nodiscard]] std::unique_ptr<ShareController> make_model_controller(const BalanceOptions& options,
                                                                     const ShareLimits& limits,
                                                                     PossibleShares possible);

}  // namespace t3d
