// The verb `flat_gains` for back ends whose tensors lie in host memory.
#include <algorithm>

#include "ops/flat_gain.hpp"
#include "ops/adasum.hpp"

namespace t3d {

void flat_gains_on_host(const FlatGainArgs& args) {
  const auto weights = adasum::leaf_weights(args.weights.as<double>(), args.weights.cols);
  const double square = args.unscale * args.unscale;
  auto* summary = args.summary.as<double>();
  std::fill_n(summary, args.summary.cols, 0.0);
  for (index_t g = 0; g < args.gains.cols; ++g) {
    const double mean_square = args.mean_squares.as<double>()[g] * square;
    double gain = 1;
    if (weights.count > 1) {
      const auto estimate = adasum::estimate_from_squares(
          args.leaf_squares.as<double>()[g] * square, mean_square, weights);
      gain = adasum::flat_gain(estimate, weights);
      summary[adasum_summary::signal] += estimate.signal;
      summary[adasum_summary::noise] += estimate.noise;
    }
    args.gains.as<double>()[g] = gain_power(gain, args.gain_exponent);
    summary[adasum_summary::mean_squares] += mean_square;
    summary[adasum_summary::gain] += gain * mean_square;
  }
  double& gain = summary[adasum_summary::gain];
  const double squares = summary[adasum_summary::mean_squares];
  gain = squares > 0 ? gain / squares : 1.0;
  summary[adasum_summary::weights] = weights.total;
  for (index_t i = 0; i < args.weights.cols; ++i)
    summary[adasum_summary::columns + i] = args.weights.as<double>()[i] > 0 ? 1 : 0;
}

}  // namespace t3d
