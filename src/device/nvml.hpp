// The GPUs of this host as the driver's management library (NVML) shows them: names and energy. It
// is looked for when it is first asked and need not be there; nothing of CUDA is linked for it.
#pragma once
#include <optional>
#include <vector>

#include "device/host_facts.hpp"

namespace t3d {

/// All that this process may see, whoever uses them; none without a driver.
[[nodiscard]] std::vector<GpuFacts> nvml_gpus();
/// Joules that these GPUs have taken since their driver was loaded, together; nothing where there
/// is none, or one that does not count (before Volta).
[[nodiscard]] std::optional<double> nvml_joules();

}  // namespace t3d
