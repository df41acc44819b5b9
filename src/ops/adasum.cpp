#include "ops/adasum.hpp"

#include <algorithm>
#include <array>

#include "core/options.hpp"
#include "ops/adasum_group.hpp"

namespace t3d {
namespace {

static_assert(adasum::kMostVectors >= kMostLeaves);
using adasum::GroupResult;
using adasum::GroupStep;

/// Writes the vectors that take part, in their order; how many.
int find_live(const AdasumArgs& args, int* live) {
  const index_t n = args.weights.cols;
  const auto *gram = args.gram.as<double>(), *weight = args.weights.as<double>();
  int count = 0;
  for (index_t i = 0; i < n; ++i)
    if (weight[i] > 0 && adasum::finite_everywhere(gram, args.gram.rows, args.gram.ld, n, i))
      live[count++] = static_cast<int>(i);
  return count;
}

GroupStep step_of(const AdasumArgs& args, int* live) {
  GroupStep step;
  step.n = args.weights.cols;
  step.weight = args.weights.as<double>();
  step.live = live;
  step.count = find_live(args, live);
  step.total = adasum::total_weight(step.weight, live, step.count);
  step.unscale = args.unscale;
  step.divisor = divisor_of(args.rule, step.total);
  step.noise_leaf = args.noise_leaf;
  step.plain_leaf = args.plain_leaf;
  step.noise_decay = args.noise_decay;
  return step;
}

}  // namespace

void adasum_on_host(const AdasumArgs& args) {
  const index_t n = args.weights.cols;
  T3D_CHECK(n <= adasum::kMostVectors, "{} vectors, at most {}", n, adasum::kMostVectors);
  T3D_CHECK(args.gram.cols == adasum::packed_size(n), "{} numbers of a triangle of {}",
            args.gram.cols, n);
  std::array<int, adasum::kMostVectors> live{};
  std::array<double, adasum::kMostVectors> scratch{};
  const GroupStep step = step_of(args, live.data());

  auto* summary = args.summary.as<double>();
  std::fill_n(summary, args.summary.cols, 0.0);
  for (index_t g = 0; g < args.gram.rows; ++g) {
    double* noise =
        args.noise.data == nullptr ? nullptr : args.noise.as<double>() + g * args.noise.ld;
    const GroupResult result = adasum::aggregate_group(
        step, args.gram.as<double>() + g * args.gram.ld, noise,
        args.coefficients.as<double>() + g * args.coefficients.ld, scratch.data());
    args.gains.as<double>()[g] = gain_power(result.gain, args.gain_exponent);
    summary[adasum_summary::mean_squares] += result.mean_square;
    summary[adasum_summary::gain] += result.gain * result.mean_square;
    summary[adasum_summary::signal] += noise == nullptr ? 0 : noise[0];
    summary[adasum_summary::noise] += noise == nullptr ? 0 : noise[1];
  }
  const double squares = summary[adasum_summary::mean_squares];
  double& gain = summary[adasum_summary::gain];
  gain = squares > 0 ? gain / squares : 1;
  summary[adasum_summary::weights] = step.total;
  for (int x = 0; x < step.count; ++x) summary[adasum_summary::columns + step.live[x]] = 1;
}

}  // namespace t3d
