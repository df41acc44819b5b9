// Numbers and long lines as the program prints them.
#include "core/commas.hpp"
#include "core/folded.hpp"
#include "support/catch.hpp"

namespace t3d {

TEST_CASE("large numbers have commas and no exponent") {
  CHECK(with_commas(10889660) == "10,889,660");
  CHECK(with_commas(-1234) == "-1,234");
  CHECK(readable(1.116e4, 4) == "11,160");
  CHECK(readable(2.29e7) == "22,900,000");
  CHECK(readable(999.4) == "999");
  CHECK(readable(999.6) == "1,000");
  CHECK(readable(0.0767234) == "0.0767");
  CHECK(readable(1.5) == "1.5");
}

TEST_CASE("long lines are folded between words") {
  const std::string word(30, 'w');
  CHECK(folded(word, 2) == word);
  CHECK(folded(word + " " + word + " " + word + " " + word, 2) ==
        word + " " + word + " " + word + "\n  " + word);
  const std::string longer(120, 'l');  // a path stays whole
  CHECK(folded(longer + " " + word, 4) == longer + "\n    " + word);
  CHECK(folded(word + " " + longer, 4) == word + "\n    " + longer);
}

}  // namespace t3d
