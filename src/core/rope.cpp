#include "core/rope.hpp"

#include <algorithm>
#include <numbers>

namespace t3d {
namespace {

/// The pair that turns `turns` times within the original context.
double pair_of(double turns, const RopeOptions& options, double head_size) {
  const auto context = static_cast<double>(options.original_context);
  return head_size * std::log(context / (turns * 2 * std::numbers::pi)) /
         (2 * std::log(options.base));
}

/// Wave lengths above original_context / low_freq_factor are slowed down whole, those below
/// original_context / high_freq_factor not at all.
void scale_by_wave_length(const RopeOptions& options, RopeFrequencies& result) {
  const double width = options.high_freq_factor - options.low_freq_factor;
  result.c0 = 1 + options.low_freq_factor / width;
  result.c2 = -static_cast<double>(options.original_context) / (2 * std::numbers::pi * width);
}

void scale_by_pair(const RopeOptions& options, double head_size, RopeFrequencies& result) {
  const double first = std::max(std::floor(pair_of(options.beta_fast, options, head_size)), 0.0);
  double last = std::min(std::ceil(pair_of(options.beta_slow, options, head_size)), head_size - 1);
  if (last == first) last += 0.001;  // as the published code does: no division by 0
  result.c0 = -first / (last - first);
  result.c1 = 1 / (last - first);
  result.amplitude = options.attention_factor > 0 ? options.attention_factor
                     : options.factor > 1         ? 0.1 * std::log(options.factor) + 1
                                                  : 1;
}

}  // namespace

RopeFrequencies rope_frequencies(const RopeOptions& options, index_t head_size) {
  const auto size = static_cast<double>(head_size);
  RopeFrequencies result;
  result.log2_step = -2.0 / size * std::log2(options.base);
  if (options.scaling == RopeScaling::none) return result;
  result.shrink = 1 - 1 / options.factor;
  switch (options.scaling) {
    case RopeScaling::llama3: scale_by_wave_length(options, result); break;
    case RopeScaling::yarn: scale_by_pair(options, size, result); break;
    default: result.c0 = 1;
  }
  return result;
}

}  // namespace t3d
