#include <cmath>

#include "core/random.hpp"
#include "hetero/speed/sample_statistics.hpp"
#include "support/catch.hpp"

using namespace t3d;

namespace {

constexpr double kNear = 1e-12;

bool near(double a, double b) { return std::abs(a - b) <= kNear * (1 + std::abs(b)); }

}  // namespace

TEST_CASE("a median is the middle value, or the mean of the middle two") {
  CHECK(median_of(std::vector<double>{}) == 0);
  CHECK(median_of(std::vector<double>{3}) == 3);
  CHECK(near(median_of(std::vector<double>{5, 1, 3}), 3));
  CHECK(near(median_of(std::vector<double>{4, 1, 3, 2}), 2.5));
  CHECK(near(median_of(std::vector<double>{2, 2, 1, 9, 2}), 2));
}

TEST_CASE("outliers move neither the median nor its error") {
  const std::vector<double> calm{10, 11, 9, 10.5, 9.5, 10, 10.2};
  std::vector<double> spiked = calm;
  spiked[1] = 1e6;
  CHECK(near(mad_of(std::vector<double>{1, 2, 4, 8, 16}, 4), 3));
  CHECK(median_of(spiked) == median_of(calm));
  CHECK(median_error_of(spiked) < 3 * median_error_of(calm));
  CHECK(median_error_of(std::vector<double>{1}) == 0);
  CHECK(median_error_of(std::vector<double>{7, 7, 7}) == 0);
}

// Of many medians of normal numbers, the standard deviation is what one of them says of itself.
TEST_CASE("the error of the median is that of normal noise") {
  constexpr int kTrials = 400, kSamples = 63;
  double squares = 0, claimed = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> values;
    for (int n = 0; n < kSamples; ++n)
      values.push_back(10 + random_normal({7, 0}, static_cast<std::uint64_t>(trial * 100 + n)));
    squares += (median_of(values) - 10) * (median_of(values) - 10);
    claimed += median_error_of(values);
  }
  const double measured = std::sqrt(squares / kTrials), mean = claimed / kTrials;
  INFO("measured " << measured << ", claimed " << mean);
  CHECK(mean > 0.85 * measured);
  CHECK(mean < 1.15 * measured);
}

TEST_CASE("the slope through points with outliers is that of the others") {
  std::vector<LinePoint> points;
  for (int n = 0; n < 9; ++n) points.push_back({double(n), 3 + 0.5 * n});
  CHECK(near(theil_sen_slope(points), 0.5));
  points[2].y = 100;
  points[8].y = -40;
  CHECK(std::abs(theil_sen_slope(points) - 0.5) < 0.05);
  CHECK(theil_sen_slope(std::vector<LinePoint>{}) == 0);
  CHECK(theil_sen_slope(std::vector<LinePoint>{{1, 2}, {1, 5}}) == 0);
}

TEST_CASE("warm-up ends when two medians of five agree within a hundredth") {
  WarmUp falling;
  for (int n = 0; n < 40; ++n) CHECK_FALSE(falling.add(100 - n));
  WarmUp steady;
  for (int n = 0; n < 9; ++n) CHECK_FALSE(steady.add(10 + 0.01 * n));
  CHECK(steady.add(10));
  WarmUp spiked;  // one sample of a group is no reason to wait longer
  for (int n = 0; n < 9; ++n) CHECK_FALSE(spiked.add(n == 7 ? 1000 : 10));
  CHECK(spiked.add(10));
}
