// Text from tokens as they come: only whole characters, and nothing that may turn out to be the
// begin of a stop string.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/tokenizer.hpp"

namespace t3d {

/// Ids one by one, their text as soon as its characters are complete. A few ids are decoded each
/// time, not all.
class TokenText {
 public:
  /// `before`: the ids in front, whose text is known (a prompt). The tokenizer must outlive it.
  TokenText(const Tokenizer& tokenizer, const std::vector<std::int32_t>& before);
  [[nodiscard]] std::string add(std::int32_t id);
  /// What is left at the end, whole characters or not.
  [[nodiscard]] std::string rest();

 private:
  [[nodiscard]] std::string take(bool all);
  const Tokenizer& tokenizer_;
  std::vector<std::int32_t> ids_;  // those whose text is known, then the others
  std::size_t known_ = 0;
};

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
