#include "data/mixture.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <queue>

#include "core/error.hpp"

namespace t3d {
namespace {

constexpr index_t kMostPeriod = index_t{1} << 20;
constexpr index_t kStep = 1024;  // positions between two counts

/// How far the worst source would be off, per sample, or `enough` when it is no better than that.
double error_of(const std::vector<double>& shares, index_t period, double enough) {
  double worst = 0;
  index_t sum = 0;
  for (const double share : shares) {
    const double wanted = share * static_cast<double>(period), nearest = std::round(wanted);
    worst = std::max(worst, std::abs(wanted - nearest) / static_cast<double>(period));
    sum += static_cast<index_t>(nearest);
    if (nearest < 1 || worst >= enough) return enough;
  }
  return sum == period ? worst : enough;
}

/// Of kMostPeriod samples, by largest remainders.
std::vector<index_t> by_remainders(const std::vector<double>& shares) {
  std::vector<index_t> whole;
  std::vector<std::pair<double, std::size_t>> rest;
  for (const double share : shares) {
    const double wanted = share * static_cast<double>(kMostPeriod);
    whole.push_back(static_cast<index_t>(wanted));
    rest.emplace_back(wanted - std::floor(wanted), rest.size());
  }
  std::sort(rest.rbegin(), rest.rend());
  index_t left = kMostPeriod - std::accumulate(whole.begin(), whole.end(), index_t{0});
  for (std::size_t n = 0; left > 0; --left, ++n) ++whole[rest[n].second];
  return whole;
}

/// Of a source, when its next sample may come, or must have come.
struct Event {
  index_t when = 0;
  std::uint16_t source = 0;
  bool operator>(const Event& other) const {
    return when != other.when ? when > other.when : source > other.source;
  }
};
using Events = std::priority_queue<Event, std::vector<Event>, std::greater<>>;

}  // namespace

std::vector<index_t> whole_shares(const std::vector<double>& weights) {
  constexpr double kLeast = 1e-6, kExact = 1e-13;
  if (weights.empty() || weights.size() > std::numeric_limits<std::uint16_t>::max())
    throw_error(ExitCode::config, "a mixture of {} sources", weights.size());
  double sum = 0;
  for (const double weight : weights) {
    if (!(weight > 0) || !std::isfinite(weight))
      throw_error(ExitCode::config, "a weight of {} is not above 0", weight);
    sum += weight;
  }
  std::vector<double> shares;
  for (const double weight : weights) {
    shares.push_back(weight / sum);
    if (!(shares.back() >= kLeast))
      throw_error(ExitCode::config, "a weight of {} is less than a millionth of all, {}", weight,
                  sum);
  }
  double best = 1;
  index_t period = 0;
  for (index_t wanted = std::ssize(weights); wanted <= kMostPeriod && best > kExact; ++wanted) {
    const double error = error_of(shares, wanted, best);
    if (error < best) period = wanted;
    best = std::min(best, error);
  }
  if (best * static_cast<double>(kMostPeriod) > 1) return by_remainders(shares);
  std::vector<index_t> whole;
  for (const double share : shares)
    whole.push_back(std::llround(share * static_cast<double>(period)));
  return whole;
}

MixtureSchedule::MixtureSchedule(const std::vector<double>& weights)
    : shares_(whole_shares(weights)),
      table_(
          static_cast<std::size_t>(std::accumulate(shares_.begin(), shares_.end(), index_t{0}))) {
  fill_table();
}

void MixtureSchedule::fill_table() {
  const index_t period = this->period();
  std::vector<index_t> done(shares_.size());
  Events releases, deadlines;
  for (std::size_t s = 0; s < shares_.size(); ++s)
    releases.push({0, static_cast<std::uint16_t>(s)});
  for (index_t n = 0; n < period; ++n) {
    if (n % kStep == 0) counts_.insert(counts_.end(), done.begin(), done.end());
    while (!releases.empty() && releases.top().when <= n) {
      const std::uint16_t s = releases.top().source;
      releases.pop();
      deadlines.push({((done[s] + 1) * period + shares_[s] - 1) / shares_[s], s});
    }
    T3D_CHECK(!deadlines.empty() && deadlines.top().when > n, "sample {} of a mixture", n);
    const std::uint16_t s = deadlines.top().source;
    deadlines.pop();
    table_[static_cast<std::size_t>(n)] = s;
    if (++done[s] < shares_[s]) releases.push({done[s] * period / shares_[s], s});
  }
}

MixtureSchedule::Place MixtureSchedule::at(index_t position) const {
  T3D_CHECK(position >= 0, "sample position {}", position);
  const index_t within = position % period(), step = within / kStep;
  const std::uint16_t source = table_[static_cast<std::size_t>(within)];
  const auto first = table_.begin() + step * kStep, last = table_.begin() + within;
  const index_t before = counts_[static_cast<std::size_t>(step) * shares_.size() + source] +
                         std::count(first, last, source);
  return {source, position / period() * shares_[source] + before};
}

}  // namespace t3d
