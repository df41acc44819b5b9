#include "hetero/balance/rank_seconds.hpp"

#include <algorithm>

namespace t3d {

RankSeconds rank_seconds(const RankTimes& times, const RankWork& work, bool crowded) {
  // GPUs know no CPU time.
  const bool on_core = crowded && times.cpu > 0 && times.own > 0;
  const double counted = on_core ? times.cpu / times.own : 1, all = counted * times.own;
  const auto streamed = static_cast<double>(work.all.streamed);
  const double part = streamed > 0 ? static_cast<double>(work.fixed.streamed) / streamed : 0;
  const double fixed = times.whole + part * (times.other - times.whole);
  return {all, std::min(all, counted * fixed)};
}

}  // namespace t3d
