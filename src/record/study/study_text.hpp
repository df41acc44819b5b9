// A scaling study for the screen, for spreadsheets, for programs and for papers.
#pragma once
#include <string>

#include "record/study/study.hpp"

namespace t3d {

/// For people: a line for each point, and what the columns are of.
[[nodiscard]] std::string study_table(const StudyFigures& study);
/// RFC 4180: a head, and a line for each point; what is not known is empty.
[[nodiscard]] std::string study_csv(const StudyFigures& study);
/// One object; what is not known is null.
[[nodiscard]] std::string study_json(const StudyFigures& study);
/// A tabular with the rules of the package booktabs, which \input takes; what is not known is a
/// dash.
[[nodiscard]] std::string study_latex(const StudyFigures& study);
/// The same characters in LaTeX's text.
[[nodiscard]] std::string latex_text(const std::string& text);

/// What speed-up, spread and both MFU are, in sentences.
[[nodiscard]] std::string study_remarks(const StudyFigures& study);

}  // namespace t3d
