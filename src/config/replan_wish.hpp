// One entry of debug.replan: "STEP:FILE" or "STEP:same".
#pragma once
#include <optional>
#include <string>

#include "core/types.hpp"

namespace t3d {

struct ReplanWish {
  index_t step = 0;  // after this step, from 1 on
  std::string file;  // or "same"
};
/// Nothing where the text is neither form.
[[nodiscard]] std::optional<ReplanWish> parse_replan_wish(const std::string& text);

}  // namespace t3d
