#include "tools/plan/plan_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/commas.hpp"

namespace t3d {
namespace {

constexpr std::size_t kIndent = 4;  // of the lines on which a row goes on

std::string row_text(const PlanRow& row, const std::vector<std::size_t>& widths, bool apart) {
  std::string text = fmt::format("{:{}} {:<{}}", row[0], widths[0], row[1], apart ? 0 : widths[1]);
  std::size_t used = widths[0] + 1 + (apart ? 0 : widths[1]);
  if (apart) text += "\n" + std::string(used, ' ');
  for (std::size_t at = 2; at < row.size(); ++at) {
    if (used + 1 + widths[at] > kColumns) {
      text += "\n" + std::string(kIndent, ' ');
      used = kIndent;
    }
    text += at == 2 ? fmt::format(" {:<{}}", row[at], widths[at])
                    : fmt::format(" {:>{}}", row[at], widths[at]);
    used += 1 + widths[at];
  }
  return text + "\n";
}

}  // namespace

std::string milliseconds_text(double seconds) {
  const double ms = 1e3 * seconds;
  return ms < 1000 ? fmt::format("{:.2f}", ms) : with_commas(ms);
}

std::string table_text(const std::vector<PlanRow>& rows) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  widths[0] = 1;
  std::size_t all = 0;
  for (std::size_t at = 0; at < widths.size(); ++at) {
    for (const PlanRow& row : rows) widths[at] = std::max(widths[at], row[at].size());
    all += widths[at] + 1;
  }
  std::string text;
  for (const PlanRow& row : rows) text += row_text(row, widths, all > kColumns);
  return text;
}

}  // namespace t3d
