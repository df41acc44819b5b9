// The rules of LB-BSP (Chen et al., SoCC 2020; reconstructed, docs/decisions/012): baselines of the
// trainer's own controller.
#pragma once
#include "hetero/balance/share_controller.hpp"

namespace t3d {

/// Shares in proportion to predicted speeds, anew after every step (LB-BSP for CPU clusters).
[[nodiscard]] std::unique_ptr<ShareController> make_lbbsp_analytic(const ShareLimits& limits);

/// A few units from the slowest replica to the fastest, once a window (LB-BSP for GPU clusters).
[[nodiscard]] std::unique_ptr<ShareController> make_lbbsp_numeric(const ShareLimits& limits);

}  // namespace t3d
