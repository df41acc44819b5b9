#include "app/config_errors.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace t3d {
namespace {

std::vector<Fault> in_file_order(std::vector<Fault> faults) {
  std::stable_sort(faults.begin(), faults.end(), [](const Fault& a, const Fault& b) {
    return std::tuple(a.where.line == 0, a.where.line, a.where.column) <
           std::tuple(b.where.line == 0, b.where.line, b.where.column);
  });
  return faults;
}

std::string lines_of(const std::vector<Fault>& faults) {
  std::string lines;
  for (const Fault& fault : faults) lines += (lines.empty() ? "" : "\n") + fault.text();
  return lines;
}

}  // namespace

std::string Where::text() const {
  return line == 0 ? source : fmt::format("{}:{}:{}", source, line, column);
}

std::string Fault::text() const {
  return where.text() + ": " + what + (hint.empty() ? "" : "; " + hint);
}

ConfigErrors::ConfigErrors(std::vector<Fault> faults)
    : Error(ExitCode::config, lines_of(in_file_order(faults))),
      faults_(in_file_order(std::move(faults))) {}

}  // namespace t3d
