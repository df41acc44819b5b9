#include "comm/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace t3d {
namespace {
constexpr auto kRing = static_cast<index_t>(Trace::kLength);
}

index_t Trace::add(Verb verb, const std::string& axis, index_t bytes) {
  ring_[static_cast<std::size_t>(next_ % kRing)] = {verb, false, axis, bytes};
  return next_++;
}

void Trace::finish(index_t number) {
  if (number >= next_ - kRing) ring_[static_cast<std::size_t>(number % kRing)].finished = true;
}

std::string Trace::text() const {
  constexpr std::size_t kUnderWay = 3;
  std::vector<std::string> parts;
  std::string finished;
  for (index_t number = std::max<index_t>(0, next_ - kRing); number < next_; ++number) {
    const Entry& entry = ring_[static_cast<std::size_t>(number % kRing)];
    std::string text =
        fmt::format("#{} {} on {}, {} bytes sent, {}", number, name_of(entry.verb), entry.axis,
                    entry.bytes, entry.finished ? "finished" : "IN FLIGHT");
    if (entry.finished)
      finished = std::move(text);
    else if (parts.size() < kUnderWay)
      parts.push_back(std::move(text));
  }
  if (!finished.empty()) parts.push_back(std::move(finished));
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace t3d
