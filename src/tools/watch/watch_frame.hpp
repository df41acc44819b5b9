// The screen of `watch` as text: how a run is doing, drawn into so many columns and rows. Pure, so
// that it can be tested and printed once.
#pragma once
#include <string>
#include <vector>

#include "record/log/step_follower.hpp"
#include "run/run_status.hpp"

namespace t3d {

struct Screen {
  int columns = 80, rows = 40;
  bool utf8 = true;     // else blocks become ASCII, and letters that are not ASCII '?'
  bool colour = false;  // the state's line
};

/// At most `rows` lines of at most `columns` letters: state, progress, loss as a curve, a bar for
/// each rank (for groups of ranks where there are more than rows), lives and events.
[[nodiscard]] std::vector<std::string> watch_frame(const RunStatus& status,
                                                   const StepFollower& steps, const Screen& screen);

/// One line, for a screen that only grows.
[[nodiscard]] std::string watch_line(const RunStatus& status);

/// `values` as a curve of `columns` x `rows` letters, the highest row first; each column is the
/// mean of its part of them. Fewer values take fewer columns. What is not a number is not drawn.
[[nodiscard]] std::vector<std::string> curve(const std::vector<double>& values, int columns,
                                             int rows, bool utf8);

}  // namespace t3d
