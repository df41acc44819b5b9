#include "config/config_errors.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/utf8.hpp"

namespace t3d {
namespace {

/// The file from top to bottom, then what is missing in it, then the command line.
std::tuple<bool, bool, index_t, index_t> position(const Where& where) {
  return {where.source.starts_with("--set"), where.line == 0, where.line, where.column};
}

std::vector<Fault> in_order(std::vector<Fault> faults) {
  std::stable_sort(faults.begin(), faults.end(), [](const Fault& a, const Fault& b) {
    return position(a.where) < position(b.where);
  });
  return faults;
}

std::string lines_of(const std::vector<Fault>& faults) {
  std::string lines;
  for (std::size_t at = 0; at < std::min(faults.size(), ConfigErrors::kShown); ++at) {
    if (!lines.empty()) lines += "\n";
    lines += faults[at].text();
  }
  if (faults.size() > ConfigErrors::kShown)
    lines += fmt::format("\n... and {} more", faults.size() - ConfigErrors::kShown);
  return lines;
}

}  // namespace

std::string Where::text() const {
  return line == 0 ? printable(source) : fmt::format("{}:{}:{}", printable(source), line, column);
}

std::string Fault::text() const {
  return where.text() + ": " + what + (hint.empty() ? "" : "; " + hint);
}

ConfigErrors::ConfigErrors(std::vector<Fault> faults)
    : Error(ExitCode::config, lines_of(in_order(faults))), faults_(in_order(std::move(faults))) {}

}  // namespace t3d
