#include "io/lives/missing_steps.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "io/json_fields.hpp"

namespace t3d {
namespace {

constexpr std::size_t kNamedRanges = 6;  // in a sentence

std::string range_text(const StepRange& range) {
  return range.first == range.last ? std::to_string(range.first)
                                   : fmt::format("{} to {}", range.first, range.last);
}

}  // namespace

std::optional<StepRange> MissingSteps::add(index_t step) {
  if (last_ && step <= *last_) return std::nullopt;
  std::optional<StepRange> hole;
  if (last_ && step > *last_ + 1) hole = StepRange{*last_ + 1, step - 1};
  last_ = step;
  if (hole) miss(*hole);
  return hole;
}

void MissingSteps::miss(const StepRange& range) {
  count_ += range.last - range.first + 1;
  const bool kept = std::ssize(ranges_) == holes_;
  if (kept && !ranges_.empty() && ranges_.back().last + 1 == range.first) {
    ranges_.back().last = range.last;
    return;
  }
  ++holes_;
  if (ranges_.size() < kMostRanges) ranges_.push_back(range);
}

std::string MissingSteps::text() const {
  if (ranges_.empty()) return "";
  std::vector<std::string> named;
  for (const StepRange& range : ranges_)
    if (named.size() < kNamedRanges) named.push_back(range_text(range));
  const index_t more = holes_ - std::ssize(named);
  std::string end = more > 0 ? fmt::format("{} more times", more) : named.back();
  if (more == 0) named.pop_back();
  const std::string begin = fmt::format("{}", fmt::join(named, ", "));
  return fmt::format("step{} {}{}{}", count_ == 1 ? "" : "s", begin, begin.empty() ? "" : " and ",
                     end);
}

std::optional<index_t> step_of_line(std::string_view line) {
  constexpr std::string_view kBegin = "{\"step\":";
  if (line.starts_with(kBegin) && line.ends_with('}')) {
    index_t step = 0;
    const char* const end = line.data() + line.size();
    const auto [rest, fault] = std::from_chars(line.data() + kBegin.size(), end, step);
    if (fault == std::errc{} && *rest == ',' && step >= 0) return step;
  }
  const auto json = parse_object(line);
  return json ? count_of(*json, "step") : std::nullopt;
}

}  // namespace t3d
