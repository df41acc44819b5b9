#include "record/log/log_lines.hpp"

#include <utility>

namespace t3d {
namespace {

constexpr std::size_t kLongest = 1 << 26;  // bytes of a line

}  // namespace

std::optional<std::string_view> LogLines::next() {
  for (std::size_t from = at_;;) {
    const std::size_t end = text_.find('\n', from);
    if (end != std::string::npos) {
      const std::string_view line = std::string_view(text_).substr(at_, end - at_);
      at_ = end + 1;
      return std::exchange(too_long_, false) ? std::string_view() : line;
    }
    if (text_.size() - at_ > kLongest) {
      at_ = text_.size();
      too_long_ = true;
    }
    from = text_.size() - at_;  // the rest has been looked through
    if (!read_more()) return std::nullopt;
  }
}

bool LogLines::read_more() {
  constexpr index_t kPiece = 1 << 22;
  text_.erase(0, at_);
  at_ = 0;
  const std::size_t kept = text_.size();
  text_.resize(kept + kPiece);
  const index_t read = file_.read_up_to(offset_, text_.data() + kept, kPiece);
  text_.resize(kept + static_cast<std::size_t>(read));
  offset_ += read;
  return read > 0;
}

}  // namespace t3d
