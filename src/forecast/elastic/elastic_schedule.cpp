#include "forecast/elastic/elastic_schedule.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"

namespace t3d {
namespace {

constexpr double kHour = 3600;

double value_of(const ElasticSchedule& schedule, bool by_cost) {
  return by_cost ? schedule.cost : schedule.hours;
}

/// `best` = the better one within the limits; equal ones: the other of both counts.
void keep_better(ElasticSchedule candidate, const ElasticLimits& limits, bool by_cost,
                 ElasticSchedule& best) {
  if (!limits.keeps(candidate)) return;
  const auto rank = [&](const ElasticSchedule& one) {
    return std::pair(value_of(one, by_cost), value_of(one, !by_cost));
  };
  if (best.phases.empty() || rank(candidate) < rank(best)) best = std::move(candidate);
}

/// Shortest path with at most kMostPhases sizes, one after another, for a price of an hour.
class PricedPath {
 public:
  PricedPath(const std::vector<Stretch>& stretches, const std::vector<ElasticSize>& sizes,
             double hour_price)
      : stretches_(stretches), sizes_(sizes), hour_price_(hour_price) {}

  [[nodiscard]] std::vector<std::size_t> choice() {
    std::vector<double> value(states(), kNone);  // by changes, then size
    for (std::size_t size = 0; size < sizes_.size(); ++size)
      value[size] = weight(stretches_.front(), size);
    for (std::size_t at = 1; at < stretches_.size(); ++at) value = advance(value, stretches_[at]);
    auto state =
        static_cast<std::size_t>(std::min_element(value.begin(), value.end()) - value.begin());
    std::vector<std::size_t> choice(stretches_.size());
    for (std::size_t at = stretches_.size(); at-- > 0;) {
      choice[at] = state % sizes_.size();
      if (at > 0) state = from_[at - 1][state];
    }
    return choice;
  }

 private:
  static constexpr double kNone = std::numeric_limits<double>::infinity();
  [[nodiscard]] std::size_t states() const { return kMostPhases * sizes_.size(); }
  [[nodiscard]] double weight(const Stretch& stretch, std::size_t size) const {
    return sizes_[size].cost(stretch) + hour_price_ * sizes_[size].hours(stretch);
  }
  [[nodiscard]] double change(std::size_t size) const {
    const ElasticSize& to = sizes_[size];
    return to.restart_hours * to.price_per_hour + hour_price_ * (to.queue_hours + to.restart_hours);
  }

  std::vector<double> advance(const std::vector<double>& before, const Stretch& stretch) {
    std::vector<double> value(states(), kNone);
    std::vector<std::size_t>& from = from_.emplace_back(states(), 0);
    for (std::size_t phase = 0; phase < kMostPhases; ++phase) {
      const std::size_t first = phase * sizes_.size();
      std::size_t cheapest = 0;  // state with one change less
      if (phase > 0) {
        const auto begin = before.begin() + static_cast<std::ptrdiff_t>(first - sizes_.size());
        cheapest = static_cast<std::size_t>(
            std::min_element(begin, before.begin() + static_cast<std::ptrdiff_t>(first)) -
            before.begin());
      }
      for (std::size_t size = 0; size < sizes_.size(); ++size) {
        const std::size_t state = first + size;
        const double stays = before[state],
                     changes = phase > 0 ? before[cheapest] + change(size) : kNone;
        from[state] = changes < stays ? cheapest : state;
        value[state] = std::min(stays, changes) + weight(stretch, size);
      }
    }
    return value;
  }

  const std::vector<Stretch>& stretches_;
  const std::vector<ElasticSize>& sizes_;
  double hour_price_;
  std::vector<std::vector<std::size_t>> from_;  // by stretch but the first, then state
};

}  // namespace

double ElasticSize::hours(const Stretch& stretch) const {
  return stretch.steps_of(batch) * step_seconds / kHour * hours_factor;
}

double ElasticSize::cost(const Stretch& stretch) const {
  return stretch.steps_of(batch) * step_seconds / kHour * cost_factor * price_per_hour;
}

ElasticSchedule schedule_of(const std::vector<Stretch>& stretches,
                            const std::vector<ElasticSize>& sizes,
                            const std::vector<std::size_t>& choice) {
  ElasticSchedule schedule;
  for (std::size_t at = 0; at < stretches.size(); ++at) {
    const Stretch& stretch = stretches[at];
    const ElasticSize& size = sizes[choice[at]];
    if (at == 0 || choice[at] != choice[at - 1]) {
      ElasticPhase begun;
      begun.size = choice[at];
      begun.first_noise = stretch.noise;
      if (at > 0) {
        begun.hours = size.queue_hours + size.restart_hours;
        begun.cost = size.restart_hours * size.price_per_hour;
      }
      schedule.phases.push_back(begun);
    }
    ElasticPhase& phase = schedule.phases.back();
    phase.steps += stretch.steps_of(size.batch);
    phase.progress += stretch.progress;
    phase.last_noise = stretch.noise;
    phase.hours += size.hours(stretch);
    phase.cost += size.cost(stretch);
  }
  for (const ElasticPhase& phase : schedule.phases) {
    schedule.hours += phase.hours;
    schedule.cost += phase.cost;
    schedule.steps += phase.steps;
    schedule.sequences += phase.steps * sizes[phase.size].batch;
  }
  return schedule;
}

ElasticSchedule fixed_schedule(const std::vector<Stretch>& stretches,
                               const std::vector<ElasticSize>& sizes, std::size_t size) {
  return schedule_of(stretches, sizes, std::vector<std::size_t>(stretches.size(), size));
}

ElasticSchedule best_fixed(const std::vector<Stretch>& stretches,
                           const std::vector<ElasticSize>& sizes, const ElasticLimits& limits,
                           bool by_cost) {
  ElasticSchedule best;
  for (std::size_t size = 0; size < sizes.size(); ++size)
    keep_better(fixed_schedule(stretches, sizes, size), limits, by_cost, best);
  return best;
}

ElasticSchedule best_schedule(const std::vector<Stretch>& stretches,
                              const std::vector<ElasticSize>& sizes, const ElasticLimits& limits,
                              bool by_cost) {
  T3D_CHECK(!sizes.empty() && !stretches.empty(), "no sizes, or no steps");
  ElasticSchedule best = best_fixed(stretches, sizes, limits, by_cost);
  // Around what an hour of the nodes costs: from a thousandth of the cheapest to a thousand times
  // the dearest, and nothing.
  double least = 0, most = 0;
  for (const ElasticSize& size : sizes) {
    const double price = size.price_per_hour;
    if (price > 0 && (least == 0 || price < least)) least = price;
    most = std::max(most, price);
  }
  if (most == 0) least = most = 1;  // all are free
  constexpr int kPrices = 96;
  const double low = least / 1e3, high = most * 1e3;
  for (int n = -1; n < kPrices; ++n) {
    const double price = n < 0 ? 0 : low * std::pow(high / low, n / (kPrices - 1.0));
    const std::vector<std::size_t> choice = PricedPath(stretches, sizes, price).choice();
    keep_better(schedule_of(stretches, sizes, choice), limits, by_cost, best);
  }
  return best;
}

}  // namespace t3d
