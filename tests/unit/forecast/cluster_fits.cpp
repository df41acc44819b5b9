// Fits of cost models: known coefficients come back with honest errors, estimates are exact at
// samples, follow the terms far away, and groups and formats that were not measured get an answer.
#include <algorithm>
#include <cmath>

#include "core/random.hpp"
#include "core/robust.hpp"
#include "forecast/cluster/level_estimator.hpp"
#include "forecast/cluster/nnls.hpp"
#include "forecast/cluster/operator_estimator.hpp"
#include "support/catch.hpp"

using namespace t3d;

namespace {

constexpr double kNoise = 0.02;

double noise(std::uint64_t run, index_t at) {  // normal, by Box and Muller
  const double u = random_uniform({run, 1}, at), v = random_uniform({run, 2}, at);
  return std::sqrt(-2 * std::log(1 - u)) * std::cos(6.283185307179586 * v);
}

struct Problem {
  std::vector<std::vector<double>> rows;
  std::vector<double> b;
};
/// y = 2 x0 + 0 x1 + 0.5 x2 with normal noise; x1 goes along with x0.
Problem problem(std::uint64_t run) {
  Problem made;
  for (index_t i = 0; i < 40; ++i) {
    const double x = 1 + random_uniform({99, 3}, i), z = 1 + 9 * random_uniform({99, 4}, i);
    made.rows.push_back({x, x * x, z});
    made.b.push_back(2 * x + 0.5 * z + kNoise * noise(run, i));
  }
  return made;
}

/// A CPU's matmul: overhead, flops, elements, and a rate that drops for k below 64, which no term
/// says.
double true_seconds(double m, double n, double k) {
  const double rate = 5e10 / (1 + 0.3 * std::pow(64 / k, 0.6));
  return 1e-6 + 2 * m * n * k / rate + 1e-10 * (m * n + m * k + n * k);
}

std::vector<Sample> matmul_samples() {
  std::vector<Sample> samples;
  for (const double m : {16.0, 64.0, 256.0, 1024.0})
    for (const double n : {32.0, 256.0, 2048.0})
      for (const double k : {8.0, 64.0, 512.0})
        samples.push_back({{m, n, k, 0, 1}, true_seconds(m, n, k), 0});
  return samples;
}

NodeClass class_with(const std::vector<Sample>& samples) {
  NodeClass one;
  one.name = "a";
  one.operators.push_back({OperatorKind::matmul, ComputeType::fp32, {}, samples});
  return one;
}

}  // namespace

TEST_CASE("non-negative coefficients come back within their standard errors") {
  constexpr int kRuns = 400;
  int inside = 0;
  double squares = 0, claimed = 0;
  for (std::uint64_t run = 0; run < kRuns; ++run) {
    const auto [rows, b] = problem(run);
    const NonNegativeFit fit = non_negative_fit(rows, b);
    REQUIRE(fit.x.size() == 3);
    for (const double x : fit.x) REQUIRE(x >= 0);
    squares += std::pow(fit.x[2] - 0.5, 2);
    claimed += fit.errors[2] * fit.errors[2];
    if (std::abs(fit.x[2] - 0.5) < 1.645 * fit.errors[2]) ++inside;
    CHECK(fit.residual == Approx(kNoise).epsilon(0.5));
  }
  // 90 % of 400, give or take three deviations of 1.5 %; and the errors are those that are made.
  CHECK(inside > 0.855 * kRuns);
  CHECK(inside < 0.945 * kRuns);
  CHECK(std::sqrt(squares / claimed) == Approx(1).epsilon(0.12));
}

TEST_CASE("a column that would be negative, and one that repeats another, are left out") {
  const NonNegativeFit fit =
      non_negative_fit({{1, 1, 2}, {1, 2, 2}, {1, 3, 2}, {1, 4, 2}}, {4, 3, 2, 1});
  CHECK(fit.x[1] == 0);
  CHECK(fit.x[0] + 2 * fit.x[2] == Approx(2.5));
  CHECK(non_negative_fit({{0.0}}, {1.0}).x[0] == 0);
}

TEST_CASE("an estimate is exact at samples and near the truth between and beyond them") {
  const std::vector<Sample> samples = matmul_samples();
  const OperatorEstimator estimator(class_with(samples));
  const auto seconds = [&](double m, double n, double k) {
    return estimator.matmul_seconds(ComputeType::fp32,
                                    {index_t(m), index_t(n), index_t(k), false, true});
  };
  for (const Sample& sample : samples)
    CHECK(seconds(sample.shape[0], sample.shape[1], sample.shape[2]) ==
          Approx(sample.seconds).epsilon(1e-9));
  for (const auto& [m, n, k] : {std::tuple{100.0, 700.0, 200.0}, {30.0, 60.0, 30.0}})
    CHECK(seconds(m, n, k) == Approx(true_seconds(m, n, k)).epsilon(0.1));
  CHECK(seconds(8192, 8192, 8192) == Approx(true_seconds(8192, 8192, 8192)).epsilon(0.25));
  CHECK(seconds(0, 8, 8) == 0);
}

TEST_CASE("what the other samples say of each; of one sample there are no others") {
  const auto errors_of = [](const std::vector<Sample>& samples) {
    const OperatorKind kind = OperatorKind::matmul;
    return leave_one_out(
        samples, form_of(kind),
        [kind](std::span<const double> shape) { return term_counts(kind, shape); },
        [kind](std::span<const double> shape) { return place_of(kind, shape); });
  };
  const std::vector<Sample> samples = matmul_samples();
  const std::vector<double> errors = errors_of(samples);
  REQUIRE(errors.size() == samples.size());
  CHECK(median_of(std::span<const double>(errors)) < 0.1);
  CHECK(*std::max_element(errors.begin(), errors.end()) > 1e-3);  // each is left out
  CHECK(errors_of({samples.front()}).empty());
  CHECK(errors_of({}).empty());
}

TEST_CASE("what was not measured: another format of the same width, another kind") {
  const OperatorEstimator estimator(class_with(matmul_samples()));
  const MatmulShape shape{64, 64, 64, false, true};
  CHECK(estimator.matmul_seconds(ComputeType::tf32, shape) ==
        estimator.matmul_seconds(ComputeType::fp32, shape));
  CHECK(std::isinf(estimator.matmul_seconds(ComputeType::bf16, shape)));
  CHECK(std::isinf(estimator.attention_seconds(ComputeType::fp32, {1, 8, 1, 1, 8}, false)));
  CHECK(!estimator.knows(OperatorKind::norm, ComputeType::fp32));
  CachedEstimator cached(std::make_shared<OperatorEstimator>(class_with(matmul_samples())));
  for (int turn = 0; turn < 2; ++turn)
    CHECK(cached.matmul_seconds(ComputeType::fp32, shape) ==
          estimator.matmul_seconds(ComputeType::fp32, shape));
}

TEST_CASE("data sheets: bound by computing or by memory") {
  NodeClass sheet;
  const double flop = 1e-14, element = 2e-12;
  sheet.operators.push_back({OperatorKind::matmul,
                             ComputeType::bf16,
                             {FitForm::max, {5e-6, flop, element, element, element, 0, 0, 0}, {}},
                             {}});
  const OperatorEstimator estimator(sheet);
  CHECK(estimator.matmul_seconds(ComputeType::bf16, {4096, 4096, 4096}) ==
        Approx(5e-6 + flop * 2 * 4096.0 * 4096 * 4096));
  CHECK(estimator.matmul_seconds(ComputeType::bf16, {1, 4096, 4096}) ==
        Approx(5e-6 + element * (4096.0 * 4096 + 2 * 4096)));
  // The same form is found from samples that follow it.
  std::vector<Sample> samples;
  for (const double m : {1.0, 8.0, 64.0, 512.0, 4096.0})
    for (const double n : {512.0, 4096.0})
      samples.push_back(
          {{m, n, 4096, 0, 0},
           5e-6 + std::max(flop * 2 * m * n * 4096, element * (m * n + (m + n) * 4096)),
           0});
  const OperatorKind kind = OperatorKind::matmul;
  const Fit fit = SampledFit::of_samples(samples, form_of(kind), [](std::span<const double> s) {
    return term_counts(OperatorKind::matmul, s);
  });
  CHECK(fit.form == FitForm::max);
  CHECK(fit.terms[1] == Approx(flop).epsilon(0.02));
}

TEST_CASE("collectives: messages, bytes, and groups that send at once") {
  Level level;
  level.alpha_seconds = 1e-6;
  level.beta_seconds_per_byte = 1e-9;
  level.nodes = 0;
  level.nics_per_node = 2;
  const LevelEstimator shared(level);
  CHECK(shared.seconds(Verb::all_gather, 3, 3e6) == Approx(3e-6 + 3e-3));
  CHECK(shared.seconds(Verb::all_gather, 3, 3e6, 8) == Approx(3e-6 + 4 * 3e-3));
  CHECK(shared.seconds(Verb::all_gather, 0, 0) == 0);
  // 63 peers, little to say: rounds.
  CHECK(shared.seconds(Verb::all_gather, 63, 63 * 8) == Approx(6e-6 + 63 * 8e-9));
  level.groups_together = 4;
  level.beta_together_seconds_per_byte = 2.5e-9;
  CHECK(LevelEstimator(level).seconds(Verb::broadcast, 1, 1e6, 7) == Approx(1e-6 + 4e-3));
  CollectiveTable table;
  for (const double bytes : {1e4, 1e6, 1e7})
    for (const double groups : {1.0, 4.0})
      table.samples.push_back(
          {{3, bytes, groups}, 2e-6 + 3e-6 + 1e-9 * bytes * (1 + 0.5 * (groups - 1)), 0});
  table.verb = Verb::reduce_scatter;
  level.collectives.push_back(table);
  CHECK(LevelEstimator(level).seconds(Verb::reduce_scatter, 3, 1e6, 4) == Approx(5e-6 + 2.5e-3));
}
