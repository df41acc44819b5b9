// Mixtures: every window of samples has the exact shares within 2 samples; a position says all by
// itself.
#include "data/mixture.hpp"

#include <cmath>
#include <numeric>
#include <random>

#include "core/error.hpp"
#include "data/batch_source.hpp"
#include "support/catch.hpp"

using namespace t3d;
using t3d::test::contains;

namespace {

/// The worst difference from the exact share over all windows [a, b) with 0 <= a < b <= n, by the
/// largest and the smallest of count - share * position: any window is a difference of two.
double worst_window(const MixtureSchedule& mixture, const std::vector<double>& weights, index_t n) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<double> low(weights.size()), high(weights.size()), count(weights.size());
  for (index_t position = 0; position < n; ++position) {
    count[mixture.at(position).source] += 1;
    for (std::size_t s = 0; s < weights.size(); ++s) {
      const double off = count[s] - weights[s] / sum * static_cast<double>(position + 1);
      low[s] = std::min(low[s], off);
      high[s] = std::max(high[s], off);
    }
  }
  double worst = 0;
  for (std::size_t s = 0; s < weights.size(); ++s) worst = std::max(worst, high[s] - low[s]);
  return worst;
}

std::shared_ptr<TokenSource> numbers(std::int32_t first, index_t count) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), first);
  return make_memory_source(std::move(ids), 100000);
}

}  // namespace

TEST_CASE("every window has the exact shares within 2 samples, for any weights") {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(0.001, 1);
  for (int trial = 0; trial < 40; ++trial) {
    std::vector<double> weights;
    const auto sources = 1 + random() % (trial < 30 ? 8 : 60);
    while (weights.size() < sources)
      weights.push_back(trial % 3 == 0   ? std::pow(uniform(random), 6) + 1e-4
                        : trial % 3 == 1 ? static_cast<double>(1 + random() % 20)
                                         : uniform(random));
    CAPTURE(weights);
    const MixtureSchedule mixture(weights);
    CHECK(worst_window(mixture, weights, 30000) < 2);
  }
}

TEST_CASE("simple ratios are exact for ever, others within a millionth") {
  using Shares = std::vector<index_t>;
  CHECK(whole_shares({1}) == Shares{1});
  CHECK(whole_shares({0.7, 0.2, 0.1}) == Shares{7, 2, 1});
  CHECK(whole_shares({3, 3, 3}) == Shares{1, 1, 1});
  CHECK(whole_shares({0.3333, 0.6667}) == Shares{3333, 6667});
  CHECK(whole_shares({999999, 1}) == Shares{999999, 1});
  CHECK(whole_shares({1e-3, 2e-3}) == Shares{1, 2});
  const std::vector<double> odd{std::sqrt(2.0), std::exp(1.0), 3.14159265358979, 0.001};
  const Shares whole = whole_shares(odd);
  const double all = static_cast<double>(std::accumulate(whole.begin(), whole.end(), index_t{0}));
  const double sum = std::accumulate(odd.begin(), odd.end(), 0.0);
  CHECK(all <= 1 << 20);
  for (std::size_t s = 0; s < odd.size(); ++s)
    CHECK_THAT(static_cast<double>(whole[s]) / all, Catch::Matchers::WithinAbs(odd[s] / sum, 1e-6));
  // Across periods.
  const MixtureSchedule mixture({0.7, 0.2, 0.1});
  CHECK(mixture.period() == 10);
  CHECK(worst_window(mixture, {0.7, 0.2, 0.1}, 100000) < 2);
}

TEST_CASE("every sample of a source comes once and in order, at any distance") {
  const MixtureSchedule mixture({0.123, 0.456, 0.789});
  std::vector<index_t> next(3);
  for (index_t position = 0; position < 5000; ++position) {
    const auto [source, index] = mixture.at(position);
    CHECK(index == next[source]++);
  }
  const index_t far = index_t{1} << 50;
  const auto start = mixture.at(far - far % mixture.period());
  CHECK(start.source == mixture.at(0).source);
  CHECK(start.position == far / mixture.period() * mixture.shares()[start.source]);
}

TEST_CASE("weights that say nothing are refused") {
  CHECK_THROWS_WITH(whole_shares({1, 0}), contains("a weight of 0 is not above 0"));
  CHECK_THROWS_WITH(whole_shares({1, -1}), contains("not above 0"));
  CHECK_THROWS_WITH(whole_shares({1, std::nan("")}), contains("not above 0"));
  CHECK_THROWS_WITH(whole_shares({1, 1e-9}), contains("less than a millionth"));
  CHECK_THROWS_AS(whole_shares({}), Error);
}

TEST_CASE("a mixture reads every source by its own ledger, dealt in any way") {
  const std::vector<MixturePart> parts{{numbers(0, 1000), 0.5, "a"},
                                       {numbers(2000, 90), 0.25, "b"},
                                       {numbers(3000, 400), 0.25, "c"}};
  const auto read = [&](index_t position, index_t count) {
    BatchSource source(parts, 0, 8, 5, true);
    std::vector<std::int32_t> ids(static_cast<std::size_t>(count * 8)), targets(ids.size());
    source.read(position, count, ids.data(), targets.data());
    for (std::size_t n = 0; n < ids.size(); ++n) REQUIRE(targets[n] == ids[n] + 1);
    return ids;
  };
  const std::vector<std::int32_t> all = read(0, 400);
  std::vector<index_t> of_source(3);
  for (index_t n = 0; n < 400; ++n) {
    const std::int32_t id = all[static_cast<std::size_t>(n * 8)];
    ++of_source[id < 2000 ? 0 : id < 3000 ? 1 : 2];
    const auto one = read(n, 1);
    CHECK(std::equal(one.begin(), one.end(), all.begin() + n * 8));
  }
  CHECK(of_source == std::vector<index_t>{200, 100, 100});
  // The small one comes round: 11 samples, each in every epoch.
  std::vector<std::int32_t> of_b;
  for (std::size_t n = 0; n < all.size(); n += 8)
    if (all[n] >= 2000 && all[n] < 3000) of_b.push_back(all[n]);
  for (std::size_t epoch = 0; epoch < 9; ++epoch) {
    std::vector<std::int32_t> once(of_b.begin() + static_cast<std::ptrdiff_t>(epoch * 11),
                                   of_b.begin() + static_cast<std::ptrdiff_t>(epoch * 11 + 11));
    std::sort(once.begin(), once.end());
    for (std::int32_t n = 0; n < 11; ++n) CHECK(once[static_cast<std::size_t>(n)] == 2000 + 8 * n);
  }
  // A sample of every source is met within samples(); another source beside it changes no order.
  BatchSource source(parts, 0, 8, 5, true);
  CHECK(source.samples() == 124 * 2);
  CHECK(source.tokens().size() == 1490);
  BatchSource pair({parts[1], parts[2]}, 0, 8, 5, true);
  std::vector<std::int32_t> ids(8), targets(8), again;
  for (index_t n = 0; n < 22; ++n) {
    pair.read(n, 1, ids.data(), targets.data());
    if (ids[0] < 3000) again.push_back(ids[0]);
  }
  CHECK(std::equal(again.begin(), again.end(), of_b.begin()));
}
