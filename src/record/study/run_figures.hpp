// The figures of one run for a scaling study, from its folder alone: medians over the steps in
// log.jsonl, and what run.json says of the machine, the bytes and the memory.
#pragma once
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace t3d {

/// Not known.
inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

struct RunFigures {
  std::string folder;
  index_t ranks = 0, nodes = 0;
  std::string shape;                 // "1 x 2 x 2", "2 * 1 x 2 x 1"; of several kinds joined by "+"
  index_t sequences = 0, steps = 0;  // of a step; that the medians are of
  double tokens = 0;                 // of a step
  // Medians over the steps.
  double seconds = kUnknown, predicted_seconds = kUnknown;  // by hetero.cluster
  double mfu = kUnknown, mfu_of_peak = kUnknown;  // of the measured rate, of the data sheets' peak
  double imbalance = kUnknown, comm_fraction = kUnknown;
  // Of a step, over all ranks.
  double counted_bytes = kUnknown, predicted_bytes = kUnknown;
  double tensor_bytes = kUnknown, resident_bytes = kUnknown;  // largest rank's peak
  double joules = kUnknown;                                   // of a step, all nodes
  std::string why_no_energy;
  bool emulated = false, shared_cores = false;
  std::string missing_steps;  // of the last life, that log.jsonl lacks; empty where it has all
  /// What runs of one study have in common: "model.layers" -> "2", "data" -> its hash, "processor",
  /// ...; sequences and shape are not among them.
  std::map<std::string, std::string> common;
  /// That ran: "version", "commit", "build", "compiler", "flags", "build_type".
  std::map<std::string, std::string> program;
};

/// Steps of a run of `steps` that no median counts: the first fifth, at least two.
[[nodiscard]] index_t warm_up_steps(index_t steps);

/// Of the last life in a run folder. Error(no_input) where a file is missing, Error(io) where one
/// is damaged, Error(config) where the life did not end in order or has too few steps.
[[nodiscard]] RunFigures read_run_figures(const std::string& folder);

/// "model.layers is 2 in A and 3 in B; debug.threads is ...", for the first keys in which they
/// differ; empty where they belong together. Programs are not compared.
[[nodiscard]] std::string difference(const RunFigures& a, const RunFigures& b);

/// The keys of a resolved input with their values, but for those in which the runs of a study
/// differ, and those that change no figure: of [debug] how long the run waits for what, what it
/// checks and what it writes.
[[nodiscard]] std::map<std::string, std::string> telling_keys(const std::string& resolved);

}  // namespace t3d
