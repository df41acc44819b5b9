// Stop strings: a text that comes in pieces ends before them.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace t3d {

/// Ends a text before the first of several strings, however the pieces of the text are cut. Special
/// tokens have a place in the text and are not shown: "\n<|im_end|>" ends it, too.
class StopStrings {
 public:
  explicit StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {}
  /// The text that may be shown now. Nothing after stopped().
  [[nodiscard]] std::string add(std::string_view piece) { return add(piece, true); }
  /// The same for the text of a special token.
  [[nodiscard]] std::string add_special(std::string_view name) { return add(name, false); }
  /// What was kept back, at the end of the text.
  [[nodiscard]] std::string rest();
  [[nodiscard]] bool stopped() const { return stopped_; }
  [[nodiscard]] bool any() const { return !stops_.empty(); }

 private:
  [[nodiscard]] std::string add(std::string_view piece, bool visible);
  /// Takes the first `bytes` of what is held; gives those that are shown.
  [[nodiscard]] std::string take(std::size_t bytes);

  std::vector<std::string> stops_;
  std::string held_;           // not shown yet: may be the begin of a stop string
  std::vector<bool> visible_;  // of each byte of held_
  bool stopped_ = false;
};

}  // namespace t3d
