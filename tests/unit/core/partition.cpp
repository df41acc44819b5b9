// Partition: sums, lattice, order, zero weights, and bad weights.
#include "core/partition.hpp"

#include <numeric>

#include "core/error.hpp"
#include "core/random.hpp"
#include "support/catch.hpp"

namespace t3d {
namespace {

// Offsets rise from 0 to the length; all but the last non-empty part end on the lattice.
void check_well_formed(const Partition& cut, index_t length, index_t unit) {
  REQUIRE(cut.length() == length);
  REQUIRE(cut.begin(0) == 0);
  for (index_t part = 0; part < cut.parts(); ++part) {
    REQUIRE(cut.size(part) >= 0);
    REQUIRE((cut.end(part) % unit == 0 || cut.end(part) == length));
    if (cut.size(part) == 0) continue;
    REQUIRE(cut.part_of(cut.begin(part)) == part);
    REQUIRE(cut.part_of(cut.end(part) - 1) == part);
  }
  const auto sizes = cut.sizes();
  REQUIRE(std::accumulate(sizes.begin(), sizes.end(), index_t{0}) == length);
}

TEST_CASE("even cuts differ by at most one unit, the longer ones first", "[partition]") {
  for (const index_t length : {0, 1, 7, 64, 100, 1000003}) {
    for (const index_t parts : {1, 2, 3, 7, 64, 200}) {
      for (const index_t unit : {1, 4, 64}) {
        const Partition cut = Partition::even("x", length, parts, unit);
        check_well_formed(cut, length, unit);
        for (index_t part = 0; part + 1 < parts; ++part)
          REQUIRE(cut.size(part) >= cut.size(part + 1));
        const index_t units = (length + unit - 1) / unit;
        REQUIRE(cut.largest() <= (units + parts - 1) / parts * unit);
        REQUIRE(cut.size(parts - 1) > units / parts * unit - unit);
      }
    }
  }
}

TEST_CASE("weighted cuts follow their weights to within one unit and keep their order",
          "[partition]") {
  const RandomKey key{3, stream_of("weights")};
  index_t drawn = 0;
  for (int round = 0; round < 300; ++round) {
    const index_t parts = 1 + random_bits(key, drawn++) % 9;
    const index_t unit = index_t{1} << (random_bits(key, drawn++) % 5);
    const index_t length = random_bits(key, drawn++) % 5000;
    std::vector<double> weights;
    for (index_t part = 0; part < parts; ++part)
      weights.push_back(random_bits(key, drawn++) % 4 == 0
                            ? 0.0
                            : static_cast<double>(random_uniform(key, drawn++)) + 0.01);
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    if (total <= 0) continue;
    const Partition cut = Partition::weighted("x", length, weights, unit);
    check_well_formed(cut, length, unit);
    const auto units = static_cast<double>((length + unit - 1) / unit);
    for (index_t a = 0; a < parts; ++a) {
      const double weight = weights[static_cast<std::size_t>(a)];
      const double share = units * weight / total;
      if (weight <= 0) REQUIRE(cut.size(a) == 0);
      REQUIRE(std::abs(static_cast<double>(cut.size(a)) / static_cast<double>(unit) - share) < 2);
      for (index_t b = 0; b < parts; ++b)  // a part clipped at the end may be short of one unit
        if (weight > weights[static_cast<std::size_t>(b)])
          REQUIRE(cut.size(a) + unit > cut.size(b));
    }
  }
}

TEST_CASE("equal weights are an even cut", "[partition]") {
  const std::vector<double> weights(7, 0.3);
  CHECK(Partition::weighted("x", 100, weights) == Partition::even("x", 100, 7));
  const std::vector<double> halves{3, 1};
  CHECK(Partition::weighted("x", 8, halves).sizes() == std::vector<index_t>{6, 2});
}

TEST_CASE("weights of any size count by their ratios", "[partition]") {
  for (const double unit : {1e307, 1e308, 1e-320, 1.0})
    CHECK(Partition::weighted("w", 32, std::vector<double>{0.75 * unit, 0.25 * unit, 0}).sizes() ==
          std::vector<index_t>{24, 8, 0});
  CHECK(Partition::weighted("w", 32, std::vector<double>(4, 1.7e308)).sizes() ==
        std::vector<index_t>{8, 8, 8, 8});
  CHECK(Partition::weighted("w", 8, std::vector<double>{1e308, 1e-308}).sizes() ==
        std::vector<index_t>{8, 0});
}

TEST_CASE("bad weights are errors of the input", "[partition]") {
  const auto fails = [](std::vector<double> weights) {
    try {
      (void)Partition::weighted("x", 10, weights);
    } catch (const Error& error) {
      return error.code() == ExitCode::config;
    }
    return false;
  };
  CHECK(fails({1, -1}));
  CHECK(fails({0, 0}));
  CHECK(fails({1, std::nan("")}));
  CHECK(fails({1, INFINITY}));
}

TEST_CASE("part_of skips empty parts and refuses what is outside", "[partition]") {
  const Partition cut = Partition::from_offsets("x", {0, 0, 5, 5, 9});
  CHECK(cut.part_of(0) == 1);
  CHECK(cut.part_of(4) == 1);
  CHECK(cut.part_of(5) == 3);
  CHECK_THROWS_AS(cut.part_of(9), Error);
  CHECK_THROWS_AS(Partition::from_offsets("x", {0, 5, 4}), Error);
  CHECK_THROWS_AS(Partition::from_offsets("x", {1, 5}), Error);
}

TEST_CASE("scaled cuts keep their shape", "[partition]") {
  const Partition heads = Partition::even("heads", 7, 3);
  const Partition columns = heads.scaled(64, "columns");
  CHECK(columns.sizes() == std::vector<index_t>{192, 128, 128});
  CHECK(columns.unit() == 64);
  CHECK(columns.describe() == "columns 448 = 192+128+128");
}

}  // namespace
}  // namespace t3d
