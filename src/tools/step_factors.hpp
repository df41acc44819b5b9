// RUN/step_factors.json: what the steps of a run with hetero.cluster took over what the cluster's
// file says. The run writes it where its end table stands; `calibrate --from-run` puts it into the
// file.
#pragma once
#include <string>

#include "forecast/cluster/cluster.hpp"

namespace t3d {

struct StepFactors {
  std::string node_class;
  std::string calibrated_time;  // of the class's tables that they belong to
  RunFactors factors;           // of this run alone
};

[[nodiscard]] std::string step_factors_text(const StepFactors& factors);
/// Error(config) with all faults. `source` is for messages.
[[nodiscard]] StepFactors parse_step_factors(const std::string& text, const std::string& source);

}  // namespace t3d
