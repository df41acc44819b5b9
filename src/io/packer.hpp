// Numbers and texts one after another, for another process of the same program.
#pragma once
#include <cstring>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/types.hpp"

namespace t3d {

class Packer {
 public:
  void add(index_t value) { text_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void add(const std::string& text) {
    add(std::ssize(text));
    text_ += text;
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

/// Takes them out in the same order. Error(io) where the text ends before.
class Unpacker {
 public:
  /// `text` must outlive it.
  explicit Unpacker(const std::string& text) : text_(text) {}
  index_t number() {
    index_t value = 0;
    need(sizeof value);
    std::memcpy(&value, text_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::string text() {
    const auto length = static_cast<std::size_t>(number());
    need(length);
    at_ += length;
    return text_.substr(at_ - length, length);
  }
  [[nodiscard]] bool more() const { return at_ < text_.size(); }

 private:
  void need(std::size_t bytes) const {
    if (bytes > text_.size() - at_)
      throw_error(ExitCode::io, "a message of {} bytes is cut short", text_.size());
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

}  // namespace t3d
