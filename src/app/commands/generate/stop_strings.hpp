// Stop strings: a text that comes in pieces ends before them.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace t3d {

/// Ends a text before the first of several strings, however the pieces of the text are cut.
class StopStrings {
 public:
  explicit StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {}
  /// The text that may be shown now. Nothing after stopped().
  [[nodiscard]] std::string add(std::string_view piece);
  /// What was kept back, at the end of the text.
  [[nodiscard]] std::string rest();
  [[nodiscard]] bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;  // not shown: may be the begin of a stop string
  bool stopped_ = false;
};

}  // namespace t3d
