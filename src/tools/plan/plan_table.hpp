// Tables of sets of nodes, in lines of kColumns.
#pragma once
#include <string>
#include <vector>

#include "core/folded.hpp"

namespace t3d {

using PlanRow = std::vector<std::string>;  // mark, nodes, cells

/// Columns as wide as they need to be: mark, nodes and the first cell to the left, the others to
/// the right. Nodes with names for which no room is left stand on a line of their own; so do the
/// last cells of all rows where they are too many.
[[nodiscard]] std::string table_text(const std::vector<PlanRow>& rows);

/// Of a step: "8.25", "228,627".
[[nodiscard]] std::string milliseconds_text(double seconds);

/// folded(), with the end of the line.
[[nodiscard]] inline std::string folded_line(const std::string& line, std::size_t indent) {
  return folded(line, indent) + "\n";
}

}  // namespace t3d
