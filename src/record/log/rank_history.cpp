#include "record/log/rank_history.hpp"

#include "core/error.hpp"

namespace t3d {
namespace {

SpreadPoint spread_of(index_t step, double seconds, const std::vector<RankTimes>& times) {
  SpreadPoint point;
  point.step = static_cast<double>(step);
  point.seconds = seconds;
  std::vector<double> own;
  for (std::size_t rank = 0; rank < times.size(); ++rank) {
    if (times[rank].own <= 0) continue;  // a rank without work says nothing about speed
    own.push_back(times[rank].own);
    if (times[rank].own > point.most) {
      point.most = times[rank].own;
      point.slowest = static_cast<int>(rank);
    }
  }
  if (own.empty()) return point;
  point.least = *std::min_element(own.begin(), own.end());
  point.median = lower_median(std::move(own));
  return point;
}

/// The weight of `next` in the mean of both.
double weight(index_t into_steps, index_t next_steps) {
  return static_cast<double>(next_steps) / static_cast<double>(into_steps + next_steps);
}

void blend(double& into, double next, double share) { into += share * (next - into); }

}  // namespace

void merge(SpreadPoint& into, const SpreadPoint& next) {
  const double share = weight(into.steps, next.steps);
  if (next.most > into.most) into.slowest = next.slowest;
  blend(into.step, next.step, share);
  blend(into.seconds, next.seconds, share);
  blend(into.least, next.least, share);
  blend(into.median, next.median, share);
  blend(into.most, next.most, share);
  into.steps += next.steps;
}

void merge(RankPoint& into, const RankPoint& next) {
  const double share = weight(into.steps, next.steps);
  blend(into.step, next.step, share);
  blend(into.seconds, next.seconds, share);
  for (std::size_t rank = 0; rank < into.ranks.size(); ++rank)
    for (double RankTimes::*time : {&RankTimes::own, &RankTimes::cpu, &RankTimes::matmul,
                                    &RankTimes::attention, &RankTimes::other})
      blend(into.ranks[rank].*time, next.ranks[rank].*time, share);
  for (std::size_t rank = 0; rank < into.work.size(); ++rank)
    for (double RankLoad::*part : {&RankLoad::matmul, &RankLoad::attention, &RankLoad::other})
      blend(into.work[rank].*part, next.work[rank].*part, share);
  into.steps += next.steps;
}

double lower_median(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !(value > 0); });
  if (values.empty()) return 0;
  const auto middle = values.begin() + (std::ssize(values) - 1) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void RankHistory::add(index_t step, double step_seconds, const std::vector<RankTimes>& times,
                      const std::vector<RankLoad>& work) {
  if (times.empty()) return;
  if (ranks_ == 0) {
    ranks_ = times.size();
    first_step_ = step;
    // Even, and enough for a third to have two.
    const std::size_t room = kMostPoints * kMostRanks / ranks_ / 2 * 2;
    by_rank_ = ThinnedCourse<RankPoint>(std::clamp<std::size_t>(room, 6, kMostPoints));
  }
  T3D_CHECK(times.size() == ranks_, "{} ranks, {} before", times.size(), ranks_);
  T3D_CHECK(
      work.size() == (by_rank_.points().empty() ? work : by_rank_.points().front().work).size(),
      "work of {} ranks, not as before", work.size());
  T3D_CHECK(work.empty() || work.size() == ranks_, "work of {} ranks of {}", work.size(), ranks_);
  last_step_ = step;
  spread_.add(spread_of(step, step_seconds, times));
  by_rank_.add({1, static_cast<double>(step), step_seconds, times, work});
}

void RankHistory::mark(index_t step, const std::string& text) {
  if (marks_.size() == kMostMarks) {
    marks_.erase(marks_.begin() + kMostMarks / 2);
    ++marks_dropped_;
  }
  marks_.push_back({step, text});
}

RankPoint last_third(const RankHistory& history) {
  const std::vector<RankPoint>& points = history.by_rank();
  RankPoint mean;
  if (points.empty()) return mean;
  mean = points.back();
  const auto first = static_cast<double>(history.first_step());
  const double from = first + 2.0 / 3.0 * (static_cast<double>(history.last_step()) - first);
  for (auto point = points.rbegin() + 1; point != points.rend() && point->step > from; ++point)
    merge(mean, *point);
  return mean;
}

}  // namespace t3d
