// The bar on a terminal: one line, rewritten in place, never wider than the terminal.
#pragma once
#include <cstdio>
#include <string>

#include "record/log/step_record.hpp"

namespace t3d {

/// "[=======>            ]  35%  120/340  loss 6.1342  1.27k tok/s  left 05:41", at most `columns`
/// characters; the bar gives way first.
[[nodiscard]] std::string progress_text(const StepRecord& record, double seconds_left, int columns);

/// Whether somebody watches `screen`. mpirun hands every rank a terminal of its own, also when its
/// output goes to a file; then what counts is the output of mpirun, the parent.
[[nodiscard]] bool is_terminal(std::FILE* screen);

}  // namespace t3d
