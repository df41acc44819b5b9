// Post-processors: what stands around the ids of a text, such as the token that begins a document.
#pragma once
#include <cstdint>
#include <vector>

#include "tokenizer/parts/json_part.hpp"

namespace t3d::tok {

class PostProcessor {
 public:
  PostProcessor() = default;  // adds nothing
  /// By "type". Error(io) naming the part.
  explicit PostProcessor(const JsonPart& part) { add(part); }

  [[nodiscard]] std::vector<std::int32_t> apply(std::vector<std::int32_t> ids) const;
  /// The id in front of every text and that behind it; -1 = none.
  [[nodiscard]] std::int32_t front() const;
  [[nodiscard]] std::int32_t back() const;
  /// All that it ever adds.
  [[nodiscard]] std::vector<std::int32_t> added() const;

 private:
  static constexpr std::int32_t kText = -1;
  using Template = std::vector<std::int32_t>;  // ids, and kText in the place of the text's
  void add(const JsonPart& part);
  [[nodiscard]] static Template template_of(const JsonPart& part);
  std::vector<Template> steps_;  // each around what the one before made
};

}  // namespace t3d::tok
