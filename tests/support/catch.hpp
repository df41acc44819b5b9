// Catch2, version 2 or 3, under one name.
#pragma once
#ifdef T3D_CATCH2_V3
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif

#include <ostream>

#include "core/words.hpp"

namespace t3d {
/// Choices show as their words in INFO and in failed checks.
template <Worded Choice>
std::ostream& operator<<(std::ostream& out, Choice choice) {
  return out << word_of(choice);
}
}  // namespace t3d

namespace t3d::test {
#ifdef T3D_CATCH2_V3
inline auto contains(const std::string& text) { return Catch::Matchers::ContainsSubstring(text); }
#else
inline auto contains(const std::string& text) { return Catch::Contains(text); }
#endif
}  // namespace t3d::test
