// Jobs to simulate.
#pragma once
#include "forecast/simulate/many_lives.hpp"

namespace t3d::test {

/// One class of 8 nodes, sizes of 8, 6 and 4, a step of one sample per second and node.
inline SimulatedJob small_job() {
  SimulatedJob job;
  job.samples = 8 * 36000;  // ten hours
  job.classes = {{"a", 0, 2.0, Hazard(), 600}};
  for (const index_t nodes : {index_t{4}, index_t{6}, index_t{8}})
    job.sizes.push_back({"", {nodes}, 8.0 / double(nodes), 8});
  job.costs = {1, 10, 30, 5, 5, 0};
  return job;
}

inline double sum_of_parts(const JobOutcome& outcome) {
  double sum = 0;
  for (const double part : outcome.parts) sum += part;
  return sum;
}

}  // namespace t3d::test
