// How often a run reads its texts: one text, mixtures by their weights, so far and in all.
#include "run/epochs.hpp"

#include <cmath>

#include "support/catch.hpp"

namespace t3d {
namespace {

/// Of 4000 tokens in all the first gives 3000 (1.5 epochs), the second 1000 (10 epochs).
const std::vector<EpochSource> kMixture{{"web", 2000, 0.9}, {"code", 100, 0.3}};

}  // namespace

TEST_CASE("a mixture's sources are read by their weights, whatever these add up to") {
  const EpochText text = epoch_text(kMixture, 4000);
  REQUIRE(text.lines.size() == 2);
  CHECK(text.lines[0] == "tokens in all 3.00k of source web, corpus 2.00k: 1.5 epochs");
  CHECK(text.lines[1] == "tokens in all 1.00k of source code, corpus 100: 10 epochs");
  CHECK(epoch_text({{"", 100, 1}}, 2.29e9).lines[0].ends_with("corpus 100: 22,900,000 epochs"));
  // Only the one that is read too often is named.
  CHECK_THAT(text.warning, Catch::Contains("10 times (source code)") && !Catch::Contains("web"));
  CHECK(epoch_text(kMixture, 1600).warning.empty());  // just four times
}

TEST_CASE("so far, the source that is read most counts") {
  EpochCount count(kMixture, 400, 4000);
  CHECK(count.most() == Approx(1));
  count.read(1600);
  CHECK(count.most() == Approx(5));
  CHECK(count.remark() == "epochs so far: 0.75 of source web, 5 of source code");
}

TEST_CASE("of a text that is read once at most nothing is said but at the end") {
  EpochCount count({{"", 1000, 1}}, 0, 1000);
  count.read(500);
  CHECK(std::isnan(count.most()));
  CHECK(count.remark() == "epochs so far: 0.5");
  CHECK(EpochCount().remark().empty());
  CHECK(std::isnan(EpochCount().most()));
}

}  // namespace t3d
