#include "tools/generate/stop_strings.hpp"

#include <algorithm>

namespace t3d {

std::string StopStrings::add(std::string_view piece, bool visible) {
  if (stopped_) return {};
  held_ += piece;
  visible_.resize(held_.size(), visible);
  std::size_t end = std::string::npos;
  for (const std::string& stop : stops_) end = std::min(end, held_.find(stop));
  if (end != std::string::npos) {
    stopped_ = true;
    std::string shown = take(end);
    held_.clear();
    visible_.clear();
    return shown;
  }
  std::size_t kept = 0;
  for (const std::string& stop : stops_)
    for (std::size_t n = std::min(stop.size() - 1, held_.size()); n > kept; --n)
      if (held_.ends_with(std::string_view(stop).substr(0, n))) kept = n;
  return take(held_.size() - kept);
}

std::string StopStrings::rest() { return take(held_.size()); }

std::string StopStrings::take(std::size_t bytes) {
  std::string shown;
  for (std::size_t at = 0; at < bytes; ++at)
    if (visible_[at]) shown += held_[at];
  held_.erase(0, bytes);
  visible_.erase(visible_.begin(), visible_.begin() + static_cast<std::ptrdiff_t>(bytes));
  return shown;
}

}  // namespace t3d
