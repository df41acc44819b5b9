#include "hetero/balance/rank_seconds.hpp"

#include <algorithm>

namespace t3d {

double counted_part(const RankTimes& times, bool crowded) {
  return crowded && times.cpu > 0 && times.own > 0 ? times.cpu / times.own : 1;
}

RankSeconds rank_seconds(const RankTimes& times, const RankWork& work, bool crowded) {
  const double counted = counted_part(times, crowded), all = counted * times.own;
  const auto streamed = static_cast<double>(work.all.streamed);
  const double part = streamed > 0 ? static_cast<double>(work.fixed.streamed) / streamed : 0;
  const double fixed = times.whole + part * (times.other - times.whole);
  return {all, std::min(all, counted * fixed)};
}

}  // namespace t3d
