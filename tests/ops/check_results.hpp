// What holds for the buffers of a case after it ran on two back ends.
#pragma once
#include <vector>

#include "ops/case_list.hpp"
#include "support/catch.hpp"

namespace t3d::ops_test {

/// Outputs within their bounds of those of the reference; inputs and the bytes between rows
/// untouched.
inline void check_results(const std::vector<Buffer>& result, const std::vector<Buffer>& expected) {
  for (std::size_t i = 0; i < result.size(); ++i) {
    INFO("buffer " << i);
    CHECK(result[i].gaps_intact());
    if (result[i].spec().role == Role::in)
      CHECK(result[i].same_bytes(expected[i]));
    else
      CHECK(worst_ratio(result[i], expected[i]) <= 1.0);
  }
}

}  // namespace t3d::ops_test
