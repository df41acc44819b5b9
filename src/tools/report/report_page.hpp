// The page: one HTML file with style, script and data in it.
#pragma once
#include <string>
#include <vector>

#include "tools/report/run_facts.hpp"

namespace t3d {

/// What the page begins with; a file that does not is no report and is not replaced.
inline constexpr const char* kReportMark = "<!doctype html>\n<!-- transformer3d report -->\n";

/// A run as the page has it.
struct ReportRun {
  ReportJson json;    // facts, and of both blocks the heads of columns
  std::string steps;  // deflated columns of the steps
  std::string ranks;  // and of the ranks
};

/// RFC 4648, with padding.
[[nodiscard]] std::string base64_of(std::string_view bytes);

/// `report`: what is said of all runs together; "runs" is added.
[[nodiscard]] std::string report_page(ReportJson report, const std::vector<ReportRun>& runs);

}  // namespace t3d
