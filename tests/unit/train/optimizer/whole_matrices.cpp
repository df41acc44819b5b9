// Who computes which whole matrix, and what Newton-Schulz makes of it.
#include <numeric>

#include "hetero/cost/matrix_owners.hpp"
#include "support/catch.hpp"
#include "support/dense_optimizers.hpp"
#include "support/rank_context.hpp"
#include "train/optimizer/newton_schulz.hpp"

using namespace t3d;
using namespace t3d::test;

TEST_CASE("owners of matrices: longest processing time first", "[matrices]") {
  const std::vector<double> costs{3, 7, 7, 2, 5, 4};
  const MatrixOwners even = choose_owners(costs, std::vector<double>{1, 1, 1});
  // 7 -> 0, 7 -> 1, 5 -> 2, 4 -> 2, 3 -> 0, 2 -> 1
  CHECK(even.owner == std::vector<int>{0, 0, 1, 1, 2, 2});
  CHECK(even.owned == std::vector<std::vector<index_t>>{{1, 0}, {2, 3}, {4, 5}});
  CHECK(even.rounds() == 2);
  CHECK(even.matrix(1, 1) == 3);
  CHECK(even.matrix(1, 2) == MatrixOwners::kNone);

  // One rank three times as fast: 7 7 to it, as 7 / 3 and 14 / 3 < 7; 5 to the slow one, as 5 < 19
  // / 3; 4 and 3 to the fast one at 6 and 7; 2 to the slow one, as 7 < 23 / 3.
  const MatrixOwners uneven = choose_owners(costs, std::vector<double>{3, 0, 1});
  CHECK(uneven.owned == std::vector<std::vector<index_t>>{{1, 2, 5, 0}, {}, {4, 3}});
  CHECK(choose_owners({}, std::vector<double>{1, 1}).rounds() == 0);
  CHECK_THROWS_AS(choose_owners(costs, std::vector<double>{0, 0}), Error);
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
