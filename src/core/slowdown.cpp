#include "core/slowdown.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/error.hpp"

namespace t3d {
namespace {

/// Reads a number that fills [begin, end).
template <class Number>
bool read(const char* begin, const char* end, Number& number) {
  const auto [stop, error] = std::from_chars(begin, end, number);
  return error == std::errc() && stop == end && begin != end;
}

bool is_factor(double factor) { return factor >= 1 && factor <= kMostSlowdown; }

}  // namespace

SlowdownSchedule::Change SlowdownSchedule::parse(const std::string& text, int ranks) {
  const auto first = text.find(':');
  const auto second = first == std::string::npos ? first : text.find(':', first + 1);
  Change change;
  const char* data = text.data();
  if (second == std::string::npos || !read(data, data + first, change.step) ||
      !read(data + first + 1, data + second, change.rank) ||
      !read(data + second + 1, data + text.size(), change.factor) || change.step < 1 ||
      !is_factor(change.factor))
    throw_error(ExitCode::config,
                "emulate.schedule: \"{}\" is not STEP:RANK:FACTOR, with a step from 1 on and a "
                "factor of at least 1 and at most {}",
                text, kMostSlowdown);
  if (change.rank < 0 || change.rank >= ranks)
    throw_error(
        ExitCode::config, "emulate.schedule: \"{}\" names rank {}, and {}", text, change.rank,
        ranks == 1 ? "there is only rank 0" : fmt::format("the ranks are 0 to {}", ranks - 1));
  return change;
}

SlowdownSchedule::SlowdownSchedule(const std::vector<double>& factors,
                                   const std::vector<std::string>& changes, int ranks)
    : factors_(factors) {
  if (!factors_.empty() && std::ssize(factors_) != ranks)
    throw_error(ExitCode::config, "emulate.slowdown has {} factors, and there {} {} rank{}",
                factors_.size(), ranks == 1 ? "is" : "are", ranks, ranks == 1 ? "" : "s");
  for (const double factor : factors_)
    if (!is_factor(factor))
      throw_error(ExitCode::config,
                  "emulate.slowdown: {} is not a factor of at least 1 and at most {}", factor,
                  kMostSlowdown);
  for (const std::string& text : changes) changes_.push_back(parse(text, ranks));
  const auto key = [](const Change& change) { return std::pair(change.step, change.rank); };
  std::sort(changes_.begin(), changes_.end(),
            [&](const Change& a, const Change& b) { return key(a) < key(b); });
  const auto twice =
      std::adjacent_find(changes_.begin(), changes_.end(),
                         [&](const Change& a, const Change& b) { return key(a) == key(b); });
  if (twice != changes_.end())
    throw_error(ExitCode::config, "emulate.schedule names rank {} twice at step {}", twice->rank,
                twice->step);
}

double SlowdownSchedule::factor(int rank, index_t step) const {
  double factor = factors_.empty() ? 1 : factors_[static_cast<std::size_t>(rank)];
  for (const Change& change : changes_)
    if (change.rank == rank && change.step <= step) factor = change.factor;
  return factor;
}

}  // namespace t3d
