// A roofline (Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009) of one rank: what its
// plan's operators reach, against the flops that they do per byte. operators.json, which
// `transformer3d probe --operators` writes, holds one; how it is drawn: roofline_plot.hpp.
#pragma once
#include <string>
#include <vector>

#include "core/types.hpp"

namespace t3d {

struct RooflinePoint {
  std::string kind;           // "matmul", "norm", ... (OperatorKind)
  std::vector<double> shape;  // of matmul: m, n, k and whether A and B are transposed
  double times = 0;           // calls in a step
  double flops = 0, bytes = 0, seconds = 0;  // of one call
  double error = 0;                          // of the seconds, relative
  [[nodiscard]] double intensity() const { return flops / bytes; }
  [[nodiscard]] double rate() const { return flops / seconds; }
  [[nodiscard]] bool is_matmul() const { return kind == "matmul"; }
};

struct Roofline {
  std::string name;                                    // of the study's point
  std::string plan, processor, device, number_format;  // of rank 0; "cpu" or the GPU's name
  index_t ranks = 1, threads = 1;                      // of the job; of one CPU rank
  bool emulated = false;                               // rank 0 is made slower
  double matmul_rate = 0, stream_rate = 0;  // flops and bytes per second, measured; 0 = not known
  double vendor_peak = 0;                   // flops per second by the data sheet; 0 = none
  std::vector<RooflinePoint> points;
  std::vector<std::string> notes;

  /// What the measured roofs allow at this intensity, flops per second.
  [[nodiscard]] double allowed(double intensity) const;
  /// Where the two roofs meet, flops per byte; 0 where one is not known.
  [[nodiscard]] double ridge() const;
};

/// "forward", "input gradient" or "weight gradient" of a product of a linear; else its kind in
/// words.
[[nodiscard]] std::string use_of(const RooflinePoint& point);
/// "512 x 384 x 1152" (m, n, k), "4 x 128, 6 heads of 64", "12.5 MiB".
[[nodiscard]] std::string shape_text(const RooflinePoint& point);

/// JSON of operators.json; parse_roofline() gives the same numbers back.
[[nodiscard]] std::string roofline_text(const Roofline& roofline);
/// Error(io) naming `source` where it is no such text, or a number of it cannot be.
[[nodiscard]] Roofline parse_roofline(const std::string& text, const std::string& source);

}  // namespace t3d
