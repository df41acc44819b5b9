// From the folders of a study's runs to its figures, and to the files that people take away.
#pragma once
#include <string>

#include "record/study/study.hpp"

namespace t3d {

/// Reads a study's folder, or one in which run folders lie (of jobs/scaling.sbatch, say): those are
/// of one point where ranks and mesh are equal. A study's runs that have not ended are missing.
/// Error(no_input) where there is neither; errors of study_figures() and read_run_figures().
[[nodiscard]] StudyFigures collect_study(const std::string& dir);

/// Writes scaling.csv, .json, .tex and .svg into `dir`. Returns what to say on the screen.
[[nodiscard]] std::string write_study(const std::string& dir, const StudyFigures& study);

}  // namespace t3d
