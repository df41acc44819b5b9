// Where texts go: to standard output, in the order of their prompts.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "core/types.hpp"

namespace t3d {

/// A text that has ended.
struct FinishedText {
  std::string prompt, text;  // text: what was added
  index_t tokens = 0;        // that were added
  std::string_view end;      // why: "length", "eos" or "stop"
};

/// One text alone is shown as it grows, unless it is to be JSON. Several are printed whole, each
/// when it and all before it have ended: prompt, text and a newline, or a JSON object in one line.
/// Error(io) when standard output does not take them.
class TextWriter {
 public:
  TextWriter(bool stream, bool json) : stream_(stream), json_(json) {}
  void begin(const std::string& prompt);
  void piece(std::string_view text);
  void finish(index_t number, FinishedText text);

 private:
  void print(index_t number, const FinishedText& text) const;
  bool stream_, json_;
  std::map<index_t, FinishedText> waiting_;
  index_t next_ = 0;
};

}  // namespace t3d
