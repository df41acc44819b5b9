// Changes cluster.toml without losing what others wrote into it: measuring takes minutes.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "forecast/cluster/cluster.hpp"
#include "tools/command_line.hpp"

namespace t3d {

/// Writes `change` of what the file of --add says now, and of what has appeared under the name of
/// the output since; `before`: what --add said when it was read first. Two at once wait for each
/// other (FILE.lock). `more`: what was measured or told. A measurement is kept where the file
/// cannot be read any more or not be written: in FILE.measured, else on standard output; the Error
/// says so. Things to tell go into `notes`. Error(unavailable) where another process holds the
/// lock.
void update_cluster_file(const CalibrateCommand& wish, const std::string& before,
                         const Cluster& more, const std::function<Cluster(const Cluster&)>& change,
                         std::vector<std::string>& notes);

/// What is known, and what the steps of the run in `folder` took over it: Error(config) where it is
/// of a class, or of tables, that the file has not, or has been put in before. Error(no_input)
/// where the run has measured nothing.
[[nodiscard]] Cluster with_factors_of_run(Cluster known, const std::string& folder,
                                          const std::string& file);

/// "compute 1.08 +- 0.01, ..., of 240 steps (gpt-66f1)"
[[nodiscard]] std::string factors_text(const RunFactors& factors);

}  // namespace t3d
