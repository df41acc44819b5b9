// The verbs `adasum` and `flat_gains` for back ends whose tensors lie in host memory: groups one
// after another, a few thousand numbers each. The arithmetic of `adasum` is
// ops/adasum_group.hpp's.
#pragma once
#include <cmath>

#include "ops/aggregate_args.hpp"

namespace t3d {

void adasum_on_host(const AdasumArgs& args);
/// In flat_gains.cpp.
void flat_gains_on_host(const FlatGainArgs& args);

/// GroupStep::divisor of a rule, W = sum of the live weights.
[[nodiscard]] constexpr double divisor_of(AggregateRule rule, double total) {
  return rule == AggregateRule::mean ? total : rule == AggregateRule::sum ? 1 : 0;
}

/// gain^exponent; a template, as only those may be constexpr, which kernels need, around functions
/// that are not.
template <class Number>
[[nodiscard]] constexpr Number gain_power(Number gain, Number exponent) {
  if (exponent == 0) return 1;
  if (exponent == 1) return gain;
  return exponent == 0.5 ? std::sqrt(gain) : std::pow(gain, exponent);
}

}  // namespace t3d
