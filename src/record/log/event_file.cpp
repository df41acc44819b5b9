#include "record/log/event_file.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

#include "io/crc32c.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

// Field numbers.
constexpr std::uint32_t kEventTime = 1, kEventStep = 2, kEventVersion = 3, kEventSummary = 5,
                        kEventSession = 7, kSummaryValue = 1, kValueTag = 1, kValueNumber = 2,
                        kSessionStatus = 1;
constexpr std::uint64_t kSessionStart = 1;
/// How a field is encoded; the lowest three bits of its key.
enum Wire : std::uint32_t { kVarint = 0, kEight = 1, kBytes = 2, kFour = 5 };

template <class T>
void put_fixed(std::string& out, T value) {
  for (std::size_t at = 0; at < sizeof value; ++at)
    out.push_back(static_cast<char>(value >> (8 * at) & 0xff));
}

template <class T>
T fixed_at(std::string_view text, std::size_t at) {
  T value = 0;
  for (std::size_t byte = 0; byte < sizeof value; ++byte)
    value |= static_cast<T>(static_cast<unsigned char>(text[at + byte])) << (8 * byte);
  return value;
}

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>((value & 0x7f) | 0x80));
  out.push_back(static_cast<char>(value));
}

void put_key(std::string& out, std::uint32_t field, Wire wire) {
  put_varint(out, field << 3 | wire);
}

void put_bytes(std::string& out, std::uint32_t field, std::string_view bytes) {
  put_key(out, field, kBytes);
  put_varint(out, bytes.size());
  out += bytes;
}

std::string event_of(double seconds, index_t step) {
  std::string event;
  put_key(event, kEventTime, kEight);
  put_fixed(event, std::bit_cast<std::uint64_t>(seconds));
  if (step != 0) {
    put_key(event, kEventStep, kVarint);
    put_varint(event, static_cast<std::uint64_t>(step));
  }
  return event;
}

// A CRC of data that hold CRCs themselves would be weak: the format rotates and shifts it.
std::uint32_t masked_crc(std::string_view text) {
  const std::uint32_t crc = ~crc32c(text);
  return std::rotr(crc, 15) + 0xa282ead8U;
}

/// Takes fields off the front of a message.
class FieldReader {
 public:
  explicit FieldReader(std::string_view message) : rest_(message) {}
  /// False at the end, and at what is no field.
  bool next() {
    const auto key = varint();
    if (!key) return false;
    field_ = static_cast<std::uint32_t>(*key >> 3);
    switch (static_cast<Wire>(*key & 7)) {
      case kVarint: {
        const auto value = varint();
        value_ = value.value_or(0);
        return value.has_value();
      }
      case kEight: return skip(8);
      case kFour: return skip(4);
      case kBytes: {
        const auto length = varint();
        return length && skip(*length);
      }
    }
    return false;
  }
  [[nodiscard]] std::uint32_t field() const { return field_; }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }
  bool skip(std::uint64_t bytes) {
    if (bytes > rest_.size()) return false;
    rest_.remove_prefix(bytes);
    return true;
  }
  std::string_view rest_;
  std::uint32_t field_ = 0;
  std::uint64_t value_ = 0;
};

struct EventLook {
  index_t step = 0;
  bool has_summary = false;
};

EventLook look_at(std::string_view event) {
  EventLook look;
  for (FieldReader field(event); field.next();) {
    if (field.field() == kEventStep) look.step = static_cast<index_t>(field.value());
    if (field.field() == kEventSummary) look.has_summary = true;
  }
  return look;
}

constexpr std::size_t kHead = 12, kTail = 4, kMostBytes = 1 << 24;

/// The records of a file, one after the other, up to the first that is torn or damaged; a piece of
/// the file is in memory at a time.
class EventReader {
 public:
  explicit EventReader(const std::string& path) : file_(path) {}

  /// What the next one says.
  std::optional<EventLook> next() {
    if (!hold(kHead)) return std::nullopt;
    const auto length = fixed_at<std::uint64_t>(text_, at_);
    if (fixed_at<std::uint32_t>(text_, at_ + 8) != masked_crc(rest().substr(0, 8)))
      return std::nullopt;
    if (length > kMostBytes || !hold(kHead + length + kTail)) return std::nullopt;
    const std::string_view data = rest().substr(kHead, length);
    if (fixed_at<std::uint32_t>(text_, at_ + kHead + length) != masked_crc(data))
      return std::nullopt;
    at_ += kHead + length + kTail;
    return look_at(data);
  }
  /// What the first whole one says that begins at byte `from` or behind it, in front of `before`:
  /// records are told by their CRCs.
  std::optional<EventLook> find(index_t from, index_t before) {
    for (move_to(from); offset() < before && hold(kHead); ++at_)
      if (const auto event = next()) return event;
    return std::nullopt;
  }
  void move_to(index_t offset) {
    text_.clear();
    at_ = 0;
    offset_ = offset;
  }
  /// Where the last one ends.
  [[nodiscard]] index_t offset() const { return offset_ + static_cast<index_t>(at_); }

 private:
  [[nodiscard]] std::string_view rest() const { return std::string_view(text_).substr(at_); }
  /// Whether so many bytes follow; then they are in memory.
  bool hold(std::size_t bytes) {
    constexpr std::size_t kPiece = 1 << 20;
    if (rest().size() >= bytes) return true;
    text_.erase(0, at_);
    offset_ += static_cast<index_t>(std::exchange(at_, 0));
    const std::size_t kept = text_.size();
    text_.resize(std::max(bytes, kPiece));
    const index_t read = file_.read_up_to(offset_ + static_cast<index_t>(kept), text_.data() + kept,
                                          static_cast<index_t>(text_.size() - kept));
    text_.resize(kept + static_cast<std::size_t>(read));
    return text_.size() >= bytes;
  }

  FileReader file_;
  std::string text_;
  std::size_t at_ = 0;
  index_t offset_ = 0;  // of the text in the file
};

}  // namespace

std::string tf_record(std::string_view data) {
  std::string record;
  put_fixed(record, static_cast<std::uint64_t>(data.size()));
  put_fixed(record, masked_crc(record));
  record += data;
  put_fixed(record, masked_crc(data));
  return record;
}

std::string version_event(double seconds) {
  std::string event = event_of(seconds, 0);
  put_bytes(event, kEventVersion, "brain.Event:2");
  return event;
}

std::string start_event(double seconds, index_t step) {
  std::string session;
  put_key(session, kSessionStatus, kVarint);
  put_varint(session, kSessionStart);
  std::string event = event_of(seconds, step);
  put_bytes(event, kEventSession, session);
  return event;
}

std::string scalar_event(double seconds, index_t step, const std::vector<EventScalar>& scalars) {
  std::string summary;
  for (const auto& [tag, number] : scalars) {
    std::string value;
    put_bytes(value, kValueTag, tag);
    put_key(value, kValueNumber, kFour);
    put_fixed(value, std::bit_cast<std::uint32_t>(static_cast<float>(number)));
    put_bytes(summary, kSummaryValue, value);
  }
  std::string event = event_of(seconds, step);
  put_bytes(event, kEventSummary, summary);
  return event;
}

// Halving the file, as find_records does; the rest record by record.
FoundEvents find_events(const std::string& path, index_t last_step) {
  constexpr index_t kNear = 1 << 20;
  FoundEvents found;
  EventReader events(path);
  const auto keep = [&](const EventLook& event) {
    found.bytes = events.offset();
    found.has_steps = found.has_steps || event.has_summary;
  };
  for (index_t end = file_size(path); end - found.bytes > kNear;) {
    const index_t middle = found.bytes + (end - found.bytes) / 2;
    const auto event = events.find(middle, end);
    if (event && event->step <= last_step)
      keep(*event);
    else
      end = middle;
  }
  events.move_to(found.bytes);
  while (const auto event = events.next()) {
    if (event->step > last_step) break;
    keep(*event);
  }
  return found;
}

void for_each_event_step(const std::string& path, const std::function<void(index_t)>& see,
                         index_t from) {
  EventReader events(path);
  auto event = from > 0 ? events.find(from, file_size(path)) : events.next();
  for (; event; event = events.next())
    if (event->has_summary) see(event->step);
}

std::optional<index_t> first_logged_step(const std::string& path) {
  EventReader events(path);
  while (const auto event = events.next())
    if (event->has_summary) return event->step;
  return std::nullopt;
}

std::optional<index_t> first_event_step(const std::string& path) {
  EventReader events(path);
  while (const auto event = events.next())
    if (event->step > 0) return event->step;
  return std::nullopt;
}

}  // namespace t3d
