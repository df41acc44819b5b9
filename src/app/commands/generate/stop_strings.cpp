#include "app/commands/generate/stop_strings.hpp"

#include <algorithm>

namespace t3d {

std::string StopStrings::add(std::string_view piece) {
  if (stopped_) return {};
  held_ += piece;
  std::size_t end = std::string::npos;
  for (const std::string& stop : stops_) end = std::min(end, held_.find(stop));
  std::size_t kept = 0;
  if (end != std::string::npos) {
    stopped_ = true;
    held_.resize(end);
  } else {
    for (const std::string& stop : stops_)
      for (std::size_t n = std::min(stop.size() - 1, held_.size()); n > kept; --n)
        if (held_.ends_with(std::string_view(stop).substr(0, n))) kept = n;
  }
  std::string shown = held_.substr(0, held_.size() - kept);
  held_.erase(0, shown.size());
  return shown;
}

std::string StopStrings::rest() { return std::exchange(held_, {}); }

}  // namespace t3d
