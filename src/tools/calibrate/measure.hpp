// What a calibration measures on the ranks that were started.
#pragma once
#include <string>
#include <vector>

#include "tools/calibrate/class_facts.hpp"
#include "tools/calibrate/group_phases.hpp"

namespace t3d {

/// This rank's part of a cluster: its class with the tables of one format, without fits.
/// Collective. What could not be measured is added to `notes`.
void measure_format(Machine& machine, ComputeType compute, const JobClasses& job, double seconds,
                    NodeClass& own, std::vector<std::string>& notes);

/// Collective. What ranks of this rank's class wait where they meet, into `own`.
void measure_meetings(Machine& machine, const JobClasses& job, double seconds, NodeClass& own);

/// Collective. Levels whose groups this rank was in, with samples only.
void measure_levels(Machine& machine, const JobClasses& job, double seconds,
                    std::vector<Level>& own, std::vector<std::string>& notes);

/// Collective; the same on all ranks.
[[nodiscard]] Storage measure_storage(Communicator& world, const std::string& folder,
                                      double seconds, std::vector<std::string>& notes);

/// Of all ranks' parts: medians and fits. On rank 0.
[[nodiscard]] Cluster combined(const std::vector<Cluster>& ranks, const Calibration& calibration);

}  // namespace t3d
