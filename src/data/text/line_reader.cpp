#include "data/text/line_reader.hpp"

#include <algorithm>
#include <utility>

#include "data/text/byte_order_mark.hpp"

namespace t3d {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 18;

}  // namespace

LineReader::LineReader(std::unique_ptr<InputStream> stream, index_t offset, index_t most)
    : stream_(std::move(stream)), offset_(offset), most_(most) {}

bool LineReader::fill() {
  if (ended_) return false;
  buffer_.erase(0, std::exchange(at_, 0));
  const std::size_t had = buffer_.size();
  buffer_.resize(had + kPieceBytes);
  const index_t now = stream_->read(buffer_.data() + had, kPieceBytes);
  buffer_.resize(had + static_cast<std::size_t>(now));
  ended_ = now == 0;
  return !ended_;
}

std::optional<LineReader::Line> LineReader::next() {
  std::size_t looked = 0;  // bytes behind at_ without an end of line
  std::size_t end = std::string::npos;
  Line line;
  beginning_.clear();
  line.offset = offset_;
  while ((end = buffer_.find('\n', at_ + looked)) == std::string::npos) {
    looked = buffer_.size() - at_;
    if (static_cast<index_t>(looked) > most_) {  // keeps only its beginning
      line.too_long = true;
      if (beginning_.empty()) beginning_ = buffer_.substr(at_, 100);
      offset_ += static_cast<index_t>(looked);
      at_ = buffer_.size();
      looked = 0;
    }
    if (!fill()) break;
  }
  if (end == std::string::npos && at_ == buffer_.size() && !line.too_long) return std::nullopt;
  const std::size_t stop = std::min(end, buffer_.size());
  line.text = std::string_view(buffer_).substr(at_, stop - at_);
  const std::size_t next = std::min(stop + 1, buffer_.size());
  offset_ += static_cast<index_t>(next - at_);
  at_ = next;
  if (!beginning_.empty()) line.text = beginning_;
  if (static_cast<index_t>(line.text.size()) > most_) line.too_long = true;
  if (line.text.ends_with('\r')) line.text.remove_suffix(1);
  if (line.offset == 0) line.text = without_byte_order_mark(line.text);
  return line;
}

index_t line_number(const std::string& path, index_t offset) {
  const std::unique_ptr<InputStream> stream = open_stream(path);
  std::string piece(kPieceBytes, '\0');
  index_t number = 1;
  for (index_t left = offset; left > 0;) {
    const index_t now =
        stream->read(piece.data(), std::min(left, static_cast<index_t>(piece.size())));
    if (now == 0) break;
    number += std::count(piece.begin(), piece.begin() + now, '\n');
    left -= now;
  }
  return number;
}

}  // namespace t3d
