// The job plan: a SimulatedJob as a JSON file. `transformer3d plan` writes it, `transformer3d
// simulate` reads it, people may edit it.
//
//   {
//     "format": "transformer3d job plan", "version": 1,
//     "name": "gpt2-124m", "source": "who made this, from what",       optional
//     "currency": "USD",                                                optional
//     "samples": 2560000,              to train (steps times samples_per_step)
//     "classes": [{
//       "name": "k80", "price_per_hour": 0.45,
//       "nodes": 16,                   at most; absent: as many as the sizes ask for
//       "return_seconds": 90,          mean until a lost node is replaced; absent: never
//       "warned": false,               losses are announced site.grace_seconds before
//       "node_list": "n[1-16]",        the site's nodes of this class; absent: not known
//       "hazard": ...}],               of one node; absent: it is never lost. One of
//                                        {"like": "K80"}                         published
//                                        (hazard.hpp)
//                                        {"weibull": {"shape": 0.32, "scale_hours": 110,
//                                                     "flat_hours": 1}}            or 0, without
//                                        {"age_hours": [0, 1], "per_hour": [0.2, 0.014]}
//                                        {"per_hour": 0.01}
//     "sizes": [{                      that the job may have; sorted by samples per second
//       "name": "16 nodes, 4 x 2 x 2", "nodes": {"k80": 16},
//       "step_seconds": 1.2, "samples_per_step": 256}],
//     "step_spread": 0.03,             of one step, relative standard deviation; 0
//     "step_error": 0.02,              of all predicted step times, relative standard error; 0
//     "step_slower": 0,                the same, but none is shorter than predicted; 0
//     "costs": {"checkpoint_stall_seconds": 0.1, "checkpoint_write_seconds": 20,
//               "restart_seconds": 30, "reshape_seconds": 10, "spare_seconds": 5,
//               "copy_seconds": 0},    absent ones are 0
//     "site": {"grace_seconds": 0, "walltime_seconds": 86400, "queue_median_seconds": 600,
//              "queue_p90_seconds": 7200, "first_wait": false,
//              "job_preemptions_per_hour": 0, "crashes_per_node_hour": 0},     all optional
//     "policy": {"recovery": "requeue", "copies": 1, "interval_seconds": 0,    0 = Young's
//                "spares": 0, "sizing": "rule"}                                all optional
//   }
//
// What the numbers mean stands in simulated_job.hpp.
#pragma once
#include <string>

#include "forecast/simulate/simulated_job.hpp"

namespace t3d {

/// Error(config) that lists every fault of the file once, each with its field: not JSON, wrong
/// type, unknown or missing field, a number out of its range, a class without a name, sizes of
/// unknown classes or more nodes than the class has. At most 64 classes, 1,024 sizes.
[[nodiscard]] SimulatedJob parse_job_plan(const std::string& text, const std::string& source);

/// parse_job_plan() gives the same job back.
[[nodiscard]] std::string job_plan_text(const SimulatedJob& job);

/// "copies=2,interval=600,spares=1,sizing=wait,recovery=in_place": `base` with these changed, named
/// by the text. `interval` in seconds or "auto". Error(usage) naming the wrong part.
[[nodiscard]] SimulationPolicy parse_policy(const std::string& text, SimulationPolicy base);

}  // namespace t3d
