// Min-max apportionment against plain enumeration, and what it promises beyond the optimum.
#include "hetero/solve/apportion.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/error.hpp"
#include "core/partition.hpp"
#include "core/random.hpp"
#include "support/catch.hpp"

namespace t3d::test {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

using Counts = std::vector<index_t>;
/// seconds[n][x]: any nondecreasing table.
using Table = std::vector<std::vector<double>>;

double latest(const Table& seconds, const Counts& units) {
  double time = 0;
  for (std::size_t n = 0; n < units.size(); ++n)
    if (units[n] > 0) time = std::max(time, seconds[n][static_cast<std::size_t>(units[n])]);
  return time;
}

/// The least latest() over all ways to deal `rest` units to the parts from `n` on.
double enumerated(const Table& seconds, const Counts& most, index_t rest, Counts& units,
                  std::size_t n) {
  if (n == units.size()) return rest == 0 ? latest(seconds, units) : kNever;
  double best = kNever;
  for (units[n] = 0; units[n] <= std::min(rest, most[n]); ++units[n])
    best = std::min(best, enumerated(seconds, most, rest - units[n], units, n + 1));
  units[n] = 0;
  return best;
}

class Random {
 public:
  explicit Random(std::string_view stream) : key_{7, stream_of(stream)} {}
  index_t below(index_t end) { return random_bits(key_, drawn_++) % end; }

 private:
  RandomKey key_;
  index_t drawn_ = 0;
};

/// Steps of 0, 1 or 2, so that ties and flat pieces are common; infinite from somewhere on.
Table random_table(Random& random, std::size_t parts, index_t total) {
  Table seconds(parts);
  for (std::vector<double>& part : seconds) {
    const index_t end = random.below(3) == 0 ? random.below(total + 2) : total + 1;
    double time = 0;
    for (index_t x = 0; x <= total; ++x) {
      part.push_back(x < end ? time : kNever);
      time += static_cast<double>(random.below(3));
    }
  }
  return seconds;
}

TEST_CASE("no other way to deal the units ends earlier", "[apportion]") {
  Random random("tables");
  index_t infeasible = 0;
  for (int round = 0; round < 3000; ++round) {
    const auto parts = static_cast<std::size_t>(1 + random.below(4));
    const index_t total = random.below(9);
    const Table table = random_table(random, parts, total);
    Counts most(parts, total);
    const bool limited = random.below(2) == 0;
    if (limited)
      for (index_t& limit : most) limit = random.below(total + 2);
    Counts units(parts, 0);
    const double best = enumerated(table, most, total, units, 0);
    const PartSeconds seconds = [&](std::size_t part, index_t x) {
      return table[part][static_cast<std::size_t>(x)];
    };
    const std::span<const index_t> limits = limited ? most : std::span<const index_t>{};
    if (best == kNever) {
      ++infeasible;
      REQUIRE_THROWS_AS(min_max_apportion(parts, total, seconds, limits), Error);
      continue;
    }
    const Counts found = min_max_apportion(parts, total, seconds, limits);
    REQUIRE(std::accumulate(found.begin(), found.end(), index_t{0}) == total);
    for (std::size_t n = 0; n < parts; ++n) REQUIRE((found[n] >= 0 && found[n] <= most[n]));
    REQUIRE(latest(table, found) == best);
  }
  CHECK(infeasible > 100);
}

TEST_CASE("speeds: the latest part of any other deal is not earlier", "[apportion]") {
  Random random("speeds");
  for (int round = 0; round < 1000; ++round) {
    const auto parts = static_cast<std::size_t>(1 + random.below(4));
    const index_t total = random.below(12);
    std::vector<double> speeds(parts);
    for (double& speed : speeds) speed = 0.25 * static_cast<double>(random.below(8));
    speeds[0] += 0.25;
    Table table(parts);
    for (std::size_t n = 0; n < parts; ++n)
      for (index_t x = 0; x <= total; ++x)
        table[n].push_back(x == 0 ? 0 : static_cast<double>(x) / speeds[n]);
    Counts units(parts, 0);
    const Counts found = min_max_apportion(total, speeds);
    REQUIRE(latest(table, found) == enumerated(table, Counts(parts, total), total, units, 0));
    for (std::size_t n = 0; n < parts; ++n)
      if (speeds[n] == 0) REQUIRE(found[n] == 0);
  }
}

/// With many units: fewer than the total are done strictly before the last part ends.
TEST_CASE("nothing ends earlier with many units and parts", "[apportion]") {
  Random random("many");
  for (int round = 0; round < 200; ++round) {
    std::vector<double> speeds(static_cast<std::size_t>(1 + random.below(60)));
    for (double& speed : speeds) speed = 1e9 * (0.1 + static_cast<double>(random.below(1000)));
    const index_t total = random.below(1 << 20);
    const Counts found = min_max_apportion(total, speeds);
    REQUIRE(std::accumulate(found.begin(), found.end(), index_t{0}) == total);
    double last = 0;
    for (std::size_t n = 0; n < speeds.size(); ++n)
      last = std::max(last, static_cast<double>(found[n]) / speeds[n]);
    index_t before = 0;
    for (std::size_t n = 0; n < speeds.size(); ++n) {
      index_t units = found[n];
      while (static_cast<double>(units) / speeds[n] < last) ++units;
      before += std::max<index_t>(units - 1, 0);
    }
    REQUIRE((total == 0 || before < total));
  }
}

TEST_CASE("equal parts get the even cut, the first ones the extra", "[apportion]") {
  for (const index_t total : {0, 1, 7, 64, 1000003})
    for (const index_t parts : {1, 2, 3, 7, 64}) {
      const auto even = Partition::even("x", total, parts).sizes();
      const std::vector<double> speeds(static_cast<std::size_t>(parts), 0.7);
      CHECK(min_max_apportion(total, speeds) == even);
      // Below 10 units a part takes the same time, whatever it does.
      const PartSeconds flat = [](std::size_t, index_t x) {
        return static_cast<double>(std::max<index_t>(x, 10));
      };
      CHECK(min_max_apportion(static_cast<std::size_t>(parts), total, flat) == even);
    }
}

TEST_CASE("units that finish at the last moment go to the parts with the fewest", "[apportion]") {
  const PartSeconds seconds = [](std::size_t part, index_t x) {
    return part == 0 && x < 5 ? 1 : 2;
  };
  CHECK(min_max_apportion(3, 7, seconds) == Counts{4, 2, 1});
  CHECK(min_max_apportion(3, 14, seconds) == Counts{5, 5, 4});
}

TEST_CASE("three speed classes share as their speeds", "[apportion]") {
  CHECK(min_max_apportion(64, std::vector<double>{1, 2.2, 3.2}) == Counts{10, 22, 32});
  CHECK(min_max_apportion(6, std::vector<double>{1, 0, 2}) == Counts{2, 0, 4});
  // Largest remainder would give 1, 1, 8 and end at 1 / 0.1.
  CHECK(min_max_apportion(10, std::vector<double>{0.1, 1, 8.9}) == Counts{0, 1, 9});
}

TEST_CASE("limits bind, and what cannot be dealt is refused with the sums", "[apportion]") {
  const std::vector<double> speeds{4, 1, 1};
  CHECK(min_max_apportion(12, speeds, Counts{5, 9, 9}) == Counts{5, 4, 3});
  CHECK(min_max_apportion(3, speeds, Counts{-1, 9, 9}) == Counts{0, 2, 1});
  CHECK_THROWS_WITH(min_max_apportion(12, speeds, Counts{5, 3, 3}),
                    "12 units for 3 parts, but their limits allow only 5 + 3 + 3 = 11");
  CHECK_THROWS_WITH(min_max_apportion(12, std::vector<double>{0, 1}, Counts{9, 5}),
                    contains("in finite time they can do only 0 + 5 = 5"));
  CHECK_THROWS_WITH(min_max_apportion(1, std::vector<double>{0, 0}), contains("all have speed 0"));
  CHECK_THROWS_WITH(min_max_apportion(1, std::vector<double>{1, -2}),
                    contains("speed -2 of part 1"));
  CHECK_THROWS_AS(min_max_apportion(1, std::vector<double>{1, kNever}), Error);
  CHECK_THROWS_AS(min_max_apportion(1, std::vector<double>{1, -kNever + kNever}), Error);
}

}  // namespace
}  // namespace t3d::test
