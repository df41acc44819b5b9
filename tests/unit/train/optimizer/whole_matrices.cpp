// Who computes which whole matrix, and what Newton-Schulz makes of it.
#include <cmath>
#include <limits>
#include <numeric>

#include "support/catch.hpp"
#include "support/dense_optimizers.hpp"
#include "support/rank_context.hpp"
#include "tensor3d/matrix_owners.hpp"
#include "train/optimizer/newton_schulz.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

double load(const std::vector<index_t>& owned, const std::vector<double>& costs) {
  double sum = 0;
  for (const index_t matrix : owned) sum += costs[static_cast<std::size_t>(matrix)];
  return sum;
}

/// When the last rank ends.
double end_of(const MatrixOwners& owners, const std::vector<double>& costs,
              const std::vector<double>& speeds) {
  double end = 0;
  for (std::size_t rank = 0; rank < speeds.size(); ++rank)
    if (!owners.owned[rank].empty())
      end = std::max(end, load(owners.owned[rank], costs) / speeds[rank]);
  return end;
}

/// The least of all ways to deal the matrices from `at` on to ranks with these loads.
double least_end(const std::vector<double>& costs, const std::vector<double>& speeds,
                 std::size_t at, std::vector<double>& loads) {
  double best = std::numeric_limits<double>::infinity();
  if (at == costs.size()) {
    best = 0;
    for (std::size_t rank = 0; rank < speeds.size(); ++rank)
      if (loads[rank] > 0) best = std::max(best, loads[rank] / speeds[rank]);
    return best;
  }
  for (std::size_t rank = 0; rank < speeds.size(); ++rank) {
    if (speeds[rank] == 0) continue;
    loads[rank] += costs[at];
    best = std::min(best, least_end(costs, speeds, at + 1, loads));
    loads[rank] -= costs[at];
  }
  return best;
}

}  // namespace

TEST_CASE("owners of matrices: longest processing time first", "[matrices]") {
  const std::vector<double> costs{3, 7, 7, 2, 5, 4};
  const MatrixOwners even = choose_owners(costs, std::vector<double>{1, 1, 1});
  // 7 -> 0, 7 -> 1, 5 -> 2, 4 -> 2, 3 -> 0, 2 -> 1
  CHECK(even.owner == std::vector<int>{0, 0, 1, 1, 2, 2});
  CHECK(even.owned == std::vector<std::vector<index_t>>{{1, 0}, {2, 3}, {4, 5}});
  CHECK(even.rounds() == 2);
  CHECK(even.beginning(1, 1) == 3);
  CHECK(even.ending(1, 1) == 3);
  CHECK(even.ending(1, 2) == MatrixOwners::kNone);
  CHECK_FALSE(even.busy_after(1, 0));

  // One rank three times as fast: 7 7 to it, as 7 / 3 and 14 / 3 < 7; 5 to the slow one, as 5 < 19
  // / 3; 4 and 3 to the fast one at 6 and 7; 2 to the slow one, as 7 < 23 / 3.
  const MatrixOwners uneven = choose_owners(costs, std::vector<double>{3, 0, 1});
  CHECK(uneven.owned == std::vector<std::vector<index_t>>{{1, 2, 5, 0}, {}, {4, 3}});
  // The fast one ends at 7/3, 14/3, 6 and 7, the slow one at 5 and 7.
  CHECK(uneven.rounds() == 4);
  CHECK(uneven.last == std::vector<std::vector<index_t>>{{0, 1, 2, 3}, {}, {2, 3}});
  CHECK(uneven.beginning(2, 0) == 4);
  CHECK(uneven.beginning(2, 1) == MatrixOwners::kNone);
  CHECK(uneven.busy_after(2, 1));
  CHECK(uneven.ending(2, 2) == 4);
  CHECK_FALSE(uneven.busy_after(2, 2));
  CHECK(uneven.beginning(2, 3) == 3);
  CHECK_FALSE(uneven.busy_after(1, 0));
  CHECK(choose_owners({}, std::vector<double>{1, 1}).rounds() == 0);
  CHECK_THROWS_AS(choose_owners(costs, std::vector<double>{0, 0}), Error);
}

TEST_CASE("owners let the slowest rank end earliest, against all ways to deal", "[matrices]") {
  double mean = 0, worst = 0;
  constexpr int kCases = 60;
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    // Matrices of a block, by their costs, in two blocks of any widths.
    std::vector<double> costs, speeds;
    for (index_t at = 0; at < 8; ++at) costs.push_back(1 + 3 * random_uniform({seed, 5}, at % 4));
    for (index_t at = 0; at < 2 + static_cast<index_t>(seed) % 3; ++at)
      speeds.push_back(std::round(100 * std::max(0.0, 1.1 * random_uniform({seed, 6}, at) - 0.1)));
    speeds.front() = 100;
    std::vector<double> loads(speeds.size(), 0.0);
    const double best = least_end(costs, speeds, 0, loads);
    const double lost = end_of(choose_owners(costs, speeds), costs, speeds) / best - 1;
    INFO("case " << seed << " loses " << lost);
    CHECK(lost > -1e-9);
    worst = std::max(worst, lost);
    mean += lost / kCases;
  }
  CHECK(mean < 0.015);
  CHECK(worst < 0.08);
}

TEST_CASE("every matrix has rounds of its own, and none leaves before it is done", "[matrices]") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    std::vector<double> costs, speeds;
    for (index_t at = 0; at < 17; ++at) costs.push_back(1 + 9 * random_uniform({seed, 7}, at));
    for (index_t at = 0; at < 5; ++at) speeds.push_back(1 + 9 * random_uniform({seed, 8}, at));
    const MatrixOwners owners = choose_owners(costs, speeds);
    for (int rank = 0; rank < 5; ++rank) {
      const std::vector<index_t>& owned = owners.owned[static_cast<std::size_t>(rank)];
      std::vector<index_t> began, ended;
      for (index_t round = 0; round < owners.rounds(); ++round) {
        const index_t begins = owners.beginning(rank, round), ends = owners.ending(rank, round);
        if (begins != MatrixOwners::kNone) began.push_back(begins);
        if (ends != MatrixOwners::kNone) ended.push_back(ends);
        CHECK(owners.busy_after(rank, round) == (began.size() > ended.size()));
      }
      CHECK(began == owned);
      CHECK(ended == owned);
    }
  }
}

TEST_CASE("owners end within 4/3 of the mean load when matrices are many", "[matrices]") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<double> costs, speeds{1, 2, 0.5, 4, 1};
    for (index_t at = 0; at < 60; ++at) costs.push_back(1 + 9 * random_uniform({seed, 3}, at));
    const MatrixOwners owners = choose_owners(costs, speeds);
    const double mean = std::accumulate(costs.begin(), costs.end(), 0.0) /
                        std::accumulate(speeds.begin(), speeds.end(), 0.0);
    std::vector<index_t> seen;
    for (std::size_t rank = 0; rank < speeds.size(); ++rank) {
      double load = 0;
      for (const index_t matrix : owners.owned[rank]) {
        load += costs[static_cast<std::size_t>(matrix)];
        seen.push_back(matrix);
        CHECK(owners.owner[static_cast<std::size_t>(matrix)] == static_cast<int>(rank));
      }
      CHECK(load / speeds[rank] < mean * 4 / 3);
    }
    CHECK(seen.size() == costs.size());
  }
}

TEST_CASE("Newton-Schulz brings all singular values near 1", "[matrices]") {
  for (const auto& [rows, cols] : {std::pair<index_t, index_t>{12, 60}, {60, 12}, {1, 9}}) {
    const auto world = make_single_communicator();
    RankContext rank(*world, {1, 1, 1, 1}, DType::f64, true);
    const Tensor x = rank.context.make(DType::f64, rows, cols, MemoryKind::workspace);
    rank.ops->random_init(*rank.queue, x, {31, 7}, 0, 0, cols, 50.0);
    newton_schulz(rank.context, x, 5);
    for (index_t trial = 0; trial < 20; ++trial) {  // |X' y| / |y|, y of the shorter side
      const bool tall = rows > cols;
      std::vector<double> y, image(static_cast<std::size_t>(std::max(rows, cols)), 0);
      for (index_t a = 0; a < std::min(rows, cols); ++a) {
        y.push_back(random_normal({32, static_cast<std::uint64_t>(trial)}, a));
        for (index_t b = 0; b < std::max(rows, cols); ++b)
          image[static_cast<std::size_t>(b)] += y.back() * (tall ? get(x, b, a) : get(x, a, b));
      }
      const double stretch = norm_of(image) / norm_of(y);
      CHECK(stretch > 0.65);
      CHECK(stretch < 1.25);
    }
  }
}
