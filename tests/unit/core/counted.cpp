// Numbers with the word for what they count.
#include "core/counted.hpp"

#include "core/commas.hpp"
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

TEST_CASE("commas stand between thousands") {
  CHECK(with_commas(0) == "0");
  CHECK(with_commas(999.4) == "999");
  CHECK(with_commas(1000) == "1,000");
  CHECK(with_commas(10889660) == "10,889,660");
  CHECK(with_commas(-123456) == "-123,456");
}

}  // namespace t3d
