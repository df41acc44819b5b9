// A scaling study as numbers: what repeated runs of every point say of its step, and what follows
// from that for speed-up and efficiency. Pure functions; how it is written down: study_text.hpp,
// study_plot.hpp.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "record/study/roofline.hpp"
#include "record/study/run_figures.hpp"

namespace t3d {

/// Least, median and largest of repeated runs; all unknown without any.
struct RunSpread {
  double low = kUnknown, middle = kUnknown, high = kUnknown;
  /// (high - low) / middle.
  [[nodiscard]] double relative() const { return (high - low) / middle; }
};
/// Of the values that are known.
[[nodiscard]] RunSpread spread_of(const std::vector<double>& values);

/// At least three runs, whose largest and least step are no further apart than `most` of the
/// median: another repeat would not tell more.
[[nodiscard]] bool settled(const std::vector<double>& seconds, double most);

/// One number of ranks, and a shape where several are compared.
struct StudyPoint {
  std::string name;  // of its folder
  index_t ranks = 1;
  std::vector<RunFigures> runs;
};

struct PointFigures {
  std::string name, shape;
  index_t ranks = 0, nodes = 0, repeats = 0, sequences = 0;
  bool missing = true, shared_cores = false, emulated = false;
  bool other_program = false;  // some run is of another program than most runs of the study
  RunSpread seconds;           // of a step: of the medians of its runs
  RunSpread rate;              // tokens per second
  /// Rate / rate of the base, times the ranks of the base. Low and high: of this point's runs
  /// against the base's median.
  RunSpread speed_up;
  RunSpread efficiency;  // speed-up / ranks
  // Medians over the runs, as in RunFigures.
  double predicted_seconds = kUnknown, mfu = kUnknown, mfu_of_peak = kUnknown;
  double imbalance = kUnknown, comm_fraction = kUnknown;
  double counted_bytes = kUnknown, predicted_bytes = kUnknown;
  double tensor_bytes = kUnknown, resident_bytes = kUnknown, joules = kUnknown;
  std::string why_no_energy;
  std::vector<std::string> holes;  // "FOLDER/log.jsonl lacks steps 5 to 9"
  /// "shared cores", "emulated", "other program", "missing", "steps missing", joined by ", ".
  [[nodiscard]] std::string marks() const;
};

struct StudyFigures {
  std::string title;                 // name of the input
  bool weak = false;                 // sequences grow with the ranks
  index_t wanted_repeats = 0;        // 0 = not known
  std::vector<PointFigures> points;  // by ranks
  std::optional<std::size_t> base;   // fewest ranks, and of these the fastest; none without runs
  std::string machine;               // "2 nodes, AMD EPYC (2 cores), cpu"
  std::string program;               // of most runs: "commit abc, build 12ab (Release)"
  std::vector<std::string> warnings;
  std::vector<Roofline> rooflines;    // of the points whose operators were measured
  std::vector<std::string> no_roofs;  // of the others, why there is none
};

/// Error(config), naming key and folders, where runs do not belong together: other model, data or
/// processor; sequences that are not the same (strong) or do not grow with the ranks (weak). A
/// program that was replaced between runs is a warning.
[[nodiscard]] StudyFigures study_figures(std::string title, bool weak, index_t wanted_repeats,
                                         std::vector<StudyPoint> points);

}  // namespace t3d
