// What becomes of the places where a text is cut.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/parts/json_part.hpp"
#include "tokenizer/parts/regex.hpp"

namespace t3d::tok {

/// A match goes away, is a part of its own, belongs to the part before or behind it, or is one part
/// with the matches beside it.
enum class SplitBehavior : std::uint8_t { removed, isolated, with_previous, with_next, contiguous };
[[nodiscard]] SplitBehavior split_behavior(const JsonPart& part);

/// `spans` as Pattern::spans() gives them; the parts that stay.
[[nodiscard]] std::vector<Span> split_spans(const std::vector<Span>& spans, SplitBehavior behavior);

}  // namespace t3d::tok
