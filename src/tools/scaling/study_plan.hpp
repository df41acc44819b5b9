// What a scaling study is to run: its points, each with an input of its own, and how often. Kept as
// study.json in the study's folder, so that a later call goes on with what is missing.
//
//   DIR/study.json           points, repeats, kind
//   DIR/POINT/input.toml     the user's input with the point's ranks, shape and sequences
//   DIR/POINT/repeat-N/      run folder; finished where exit.json says 0 (without checkpoints)
//   DIR/POINT/repeat-N.log   what the launcher and the run have said
//   DIR/POINT/operators.json the operators of its plan one by one (record/study/roofline.hpp)
#pragma once
#include <string>
#include <vector>

#include "core/types.hpp"
#include "tools/command_line.hpp"

namespace t3d {

struct PlannedPoint {
  std::string name;
  index_t ranks = 1;
  std::string input;  // text
};

struct StudyPlan {
  std::string title;
  bool weak = false;
  index_t repeats = 0;
  double spread = 0;     // at which repeats end early
  bool roofline = true;  // operators are measured; not kept
  std::vector<PlannedPoint> points;
};

/// One point for each number of ranks and shape. ConfigErrors and Error(config) where the input
/// cannot be run on one of them, Error(usage) for ranks and shapes that do not fit each other.
/// `threads`: of each rank; 0 = as the input says.
[[nodiscard]] StudyPlan plan_study(const ScalingCommand& command,
                                   const std::vector<std::string>& overrides, index_t threads);

/// Joins `plan` with what stands in `dir`, which exists: points of both, repeats of `plan`.
/// Writes study.json and the inputs. Error(config) where the folder is of another study.
[[nodiscard]] StudyPlan keep_study(const std::string& dir, StudyPlan plan);
/// Error(no_input) where there is no study.json, Error(io) where it is none.
[[nodiscard]] StudyPlan read_study(const std::string& dir);

[[nodiscard]] std::string input_file(const std::string& dir, const PlannedPoint& point);
[[nodiscard]] std::string repeat_folder(const std::string& dir, const PlannedPoint& point,
                                        index_t repeat);
[[nodiscard]] std::string operators_file(const std::string& dir, const PlannedPoint& point);
/// Words of the program that measure the operators of the plan that a finished run of the point
/// had. Both are folders, or variables of a shell.
[[nodiscard]] std::vector<std::string> operators_words(const std::string& point,
                                                       const std::string& run);
/// That repeat has ended with all steps done.
[[nodiscard]] bool is_finished(const std::string& dir, const PlannedPoint& point, index_t repeat);

}  // namespace t3d
