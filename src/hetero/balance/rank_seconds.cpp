#include "hetero/balance/rank_seconds.hpp"

#include <algorithm>

namespace t3d {
namespace {

/// Of the seconds in `other`, the part that is fixed.
double fixed_part(const RankTimes& times, const RankWork& work, const RankSpeed* known) {
  const auto streamed = static_cast<double>(work.all.streamed);
  const double of_streamed = streamed > 0 ? static_cast<double>(work.fixed.streamed) / streamed : 0;
  if (work.all.whole == 0) return of_streamed;
  double whole_part = 0;
  if (known != nullptr && !known->curve(WorkClass::whole).empty() &&
      !known->curve(WorkClass::streamed).empty()) {
    const double whole = known->seconds(WorkClass::whole, work.all);
    whole_part = whole / (whole + known->seconds(WorkClass::streamed, work.all));
  } else if (work.all.matmul > 0 && times.other > 0) {
    const double whole =
        static_cast<double>(work.all.whole) / static_cast<double>(work.all.matmul) * times.matmul;
    whole_part = std::min(1.0, whole / times.other);
  }
  return whole_part + (1 - whole_part) * of_streamed;
}

}  // namespace

double counted_part(const RankTimes& times, bool crowded) {
  return crowded && times.cpu > 0 && times.own > 0 ? times.cpu / times.own : 1;
}

RankSeconds rank_seconds(const RankTimes& times, const RankWork& work, bool crowded,
                         const RankSpeed* known) {
  const double counted = counted_part(times, crowded), all = counted * times.own;
  return {all, std::min(all, counted * times.other * fixed_part(times, work, known))};
}

}  // namespace t3d
