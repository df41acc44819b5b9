#include "io/read_patience.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "core/phase_clock.hpp"

namespace t3d {
namespace {

thread_local ReadPatience* current = nullptr;

bool may_pass(int reason) {
  return reason == EIO || reason == ESTALE || reason == EAGAIN || reason == ETIMEDOUT ||
         reason == EREMOTEIO;
}

}  // namespace

ReadPatience::Scope::Scope(ReadPatience& patience) : before_(std::exchange(current, &patience)) {}

ReadPatience::Scope::~Scope() { current = before_; }

void ReadPatience::limit(double seconds) { rule_.seconds = std::min(rule_.seconds, seconds); }

bool Tries::again(int reason, const std::string& path) {
  constexpr double kFirstPause = 0.1, kLongestPause = 2;
  ReadPatience* const patience = current;
  errno = reason;
  if (patience == nullptr || patience->rule_.seconds <= 0 || !may_pass(reason)) return false;
  const ReadPatience::Rule& rule = patience->rule_;
  const double now = PhaseClock::now();
  if (counted_ < 0) {
    pause_ = kFirstPause;
    busy_.emplace("reading " + path);
    if (!patience->is_spent() && rule.say)
      rule.say(fmt::format("cannot read {} ({}): tried again for up to {:.0f} s", path,
                           std::strerror(reason), rule.seconds - patience->spent_seconds_));
  } else {
    // Without what a read inside this one has counted already.
    patience->spent_seconds_ += std::max(0.0, now - counted_ - (patience->spent_seconds_ - spent_));
  }
  if (patience->is_spent()) {
    patience->ran_out_ = true;
    errno = reason;
    return false;
  }
  const double until = now + std::min(pause_, rule.seconds - patience->spent_seconds_);
  pause_ = std::min(2 * pause_, kLongestPause);
  while (PhaseClock::now() < until) {
    if (rule.stop && rule.stop())
      throw_error(ExitCode::retry, "asked to stop by a signal while {} could not be read: {}", path,
                  std::strerror(reason));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  counted_ = PhaseClock::now();
  patience->spent_seconds_ += counted_ - now;
  spent_ = patience->spent_seconds_;
  return true;
}

}  // namespace t3d
