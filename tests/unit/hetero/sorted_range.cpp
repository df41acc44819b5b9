// The median and the MAD of a moving window, beside those of core/robust.hpp: the same bits.
#include "hetero/balance/sorted_range.hpp"

#include "core/random.hpp"
#include "core/robust.hpp"
#include "support/catch.hpp"

namespace t3d {
namespace {

/// With some numbers several times.
std::vector<double> series(std::uint64_t seed, index_t count) {
  std::vector<double> values;
  for (index_t n = 0; n < count; ++n) {
    const double value = double(random_uniform({seed, 0}, n));
    values.push_back(n % 3 == 0 ? std::floor(8 * value) / 8 : value);
  }
  return values;
}

}  // namespace

TEST_CASE("median and MAD of a window that moves in steps and jumps") {
  const std::vector<double> values = series(1, 400);
  const auto at = [&](index_t n) { return values[static_cast<std::size_t>(n)]; };
  SortedRange range;
  const auto check = [&](index_t first, index_t last) {
    range.move_to(first, last, at);
    const std::span<const double> all =
        std::span(values).subspan(std::size_t(first), std::size_t(last - first));
    INFO(first << " to " << last);
    CHECK(range.size() == all.size());
    CHECK(range.median() == median_of(all));
    CHECK(range.mad(range.median()) == mad_of(all, median_of(all)));
    CHECK(range.mad(0.3) == mad_of(all, 0.3));
  };
  check(0, 0);
  for (index_t last = 1; last <= 60; ++last) check(0, last);
  for (index_t first = 1; first <= 200; first += 1 + first % 7)
    check(first, first + 50 + first % 9);
  check(300, 310);  // none stays
  check(40, 60);    // back
  check(41, 55);
}

TEST_CASE("the median of few is that of many") {
  const std::vector<double> values = series(2, 40);
  for (std::size_t count = 0; count <= 20; ++count)
    for (std::size_t first = 0; first + count <= values.size(); ++first) {
      const std::span<const double> all = std::span(values).subspan(first, count);
      CHECK(median_of_few(all) == median_of(all));
    }
}

}  // namespace t3d
