// Numbers with the word for what they count.
#include "core/counted.hpp"

#include "core/types.hpp"
#include "support/catch.hpp"

namespace t3d {

TEST_CASE("one of a thing, and several") {
  CHECK(counted(1, "step") == "1 step");
  CHECK(counted(0, "step") == "0 steps");
  CHECK(counted(index_t{1} << 40, "token") == "1099511627776 tokens");
  CHECK(counted(std::size_t{1}, "set of nodes", "sets of nodes") == "1 set of nodes");
  CHECK(counted(std::size_t{3}, "set of nodes", "sets of nodes") == "3 sets of nodes");
}

}  // namespace t3d
