#include "run/start_clock.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace t3d {

void StartClock::mark(const char* part) {
  const double now = process_age_seconds(), seconds = now - std::exchange(last_, now);
  const auto known = std::find_if(parts_.begin(), parts_.end(),
                                  [&](const auto& entry) { return entry.first == part; });
  if (known == parts_.end())
    parts_.emplace_back(part, seconds);
  else
    known->second += seconds;
}

std::string StartClock::text() const {
  std::string text = fmt::format("start: {:.2f} s from the process to the first step", last_);
  for (const auto& [part, seconds] : parts_)
    text += fmt::format("{} {} {:.2f}", part == parts_.front().first ? ":" : ",", part, seconds);
  return text;
}

}  // namespace t3d
