#include "data/sample_ledger.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "core/error.hpp"
#include "support/catch.hpp"

using namespace t3d;

TEST_CASE("each epoch visits each sample once, in another order") {
  for (const index_t samples : {1, 2, 3, 7, 64, 1000}) {
    const SampleLedger ledger(samples * 5 + 3, 5, 11, true);
    REQUIRE(ledger.samples() == samples);
    std::vector<std::vector<index_t>> orders;
    for (index_t epoch = 0; epoch < 3; ++epoch) {
      std::vector<index_t> order;
      for (index_t n = 0; n < samples; ++n) order.push_back(ledger.sample_at(epoch * samples + n));
      CHECK(std::set<index_t>(order.begin(), order.end()).size() ==
            static_cast<std::size_t>(samples));
      CHECK(*std::max_element(order.begin(), order.end()) == samples - 1);
      orders.push_back(order);
    }
    if (samples >= 64) {
      CHECK(orders[0] != orders[1]);
      CHECK(orders[1] != orders[2]);
      CHECK_FALSE(std::is_sorted(orders[0].begin(), orders[0].end()));
    }
  }
}

TEST_CASE("the last sample's last target is inside the corpus") {
  for (const index_t tokens : {6, 10, 11, 12, 101}) {
    const SampleLedger ledger(tokens, 5, 1, true);
    index_t last = 0;
    for (index_t n = 0; n < ledger.samples(); ++n) last = std::max(last, ledger.first_token(n) + 5);
    CHECK(last < tokens);
    CHECK(last + 5 >= tokens - 1);  // and no further sample would fit
  }
}

TEST_CASE("without shuffle the order is the text's") {
  const SampleLedger ledger(31, 10, 1, false);
  for (index_t n = 0; n < 9; ++n) CHECK(ledger.sample_at(n) == n % 3);
  CHECK(ledger.epoch_of(8) == 2);
}

TEST_CASE("other seeds, other orders; too short a corpus is said") {
  const SampleLedger one(1001, 10, 1, true), two(1001, 10, 2, true);
  bool differs = false;
  for (index_t n = 0; n < 100; ++n) differs = differs || one.sample_at(n) != two.sample_at(n);
  CHECK(differs);
  CHECK_THROWS_WITH(SampleLedger(10, 10, 1, true), t3d::test::contains("10 tokens"));
  CHECK_THROWS_AS(SampleLedger(0, 10, 1, true), Error);
}
