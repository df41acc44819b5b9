#include "io/log/end_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "io/log/step_record.hpp"

namespace t3d {
namespace {

std::string phase_line(const PhaseRow& row, double total_seconds) {
  const double share = total_seconds > 0 ? row.average_seconds / total_seconds : 0;
  return fmt::format("{:<16}{:>12.3f}{:>12.3f}{:>12.3f}{:>8.1f}%\n", row.name, row.min_seconds,
                     row.average_seconds, row.max_seconds, 100 * share);
}

}  // namespace

std::string end_table_text(const EndTable& table) {
  std::string out = fmt::format("{}: {} steps in {}, {} tok/s\n", table.reason, table.steps,
                                clock_time(table.seconds), short_count(table.tokens_per_second));
  for (const std::string& remark : table.remarks) out += remark + "\n";
  if (!table.phases.empty()) {
    out +=
        fmt::format("\n{:<16}{:>12}{:>12}{:>12}{:>9}\n", "seconds", "min", "avg", "max", "share");
    double named = 0;
    for (const PhaseRow& row : table.phases) {
      out += phase_line(row, table.seconds);
      named += row.average_seconds;
    }
    const double other = std::max(table.seconds - named, 0.0);
    out += phase_line({"other", other, other, other}, table.seconds);
  }
  if (!table.axes.empty()) {
    out += fmt::format("\n{:<16}{:>20}{:>20}\n", "bytes sent, axis", "counted", "predicted");
    for (const AxisRow& row : table.axes) {
      const bool differ = row.predicted_bytes && row.predicted_bytes != row.counted_bytes;
      out += fmt::format("{:<16}{:>20}{:>20}{}\n", row.axis, row.counted_bytes,
                         row.predicted_bytes ? std::to_string(*row.predicted_bytes) : "-",
                         differ ? "  differ" : "");
    }
  }
  return out;
}

}  // namespace t3d
