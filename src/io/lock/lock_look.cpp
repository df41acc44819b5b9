#include "io/lock/lock_look.hpp"

#include <chrono>
#include <optional>
#include <thread>

#include "io/lock/lock_file.hpp"

namespace t3d {
namespace {

using Holder = LockFile::Holder;

constexpr double kFreshSeconds = 6;  // three signs of life
constexpr std::chrono::milliseconds kLook{250};

/// By clocks that may differ: good enough to say that somebody is alive, never that somebody is
/// not.
double seconds_since(std::int64_t time) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count() - 1e-9 * static_cast<double>(time);
}

/// The next sign of life came in time. `now` becomes what was seen last.
bool gives_a_sign(const std::string& path, double patience_seconds, std::optional<Holder>& now) {
  Silence silence;
  silence.look(now->sign);
  const LifeSign before = now->sign;
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(patience_seconds);
  while (std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kLook);
    now = read_lock(path);
    if (!now) return false;
    if (now->sign != before) return true;
    now->silent_seconds = silence.look(now->sign);
  }
  return false;
}

}  // namespace

LockLook look_at_lock(const std::string& folder, double patience_seconds) {
  const std::string path = folder + "/" + kLockName;
  std::optional<Holder> holder = read_lock(path);
  LockLook look;
  if (!holder) return look;
  const auto known = [&](LockLook::State state) {
    look.state = state;
    look.owner = holder->owner ? describe(*holder->owner) : "an owner that cannot be read";
    look.run = holder->owner ? holder->owner->run : "";
    look.silent_seconds = holder->silent_seconds;
    return look;
  };
  const LockOwner here = this_process("");
  if (holder->owner && has_ended(*holder->owner, here)) return known(LockLook::State::ended);
  const double age = seconds_since(holder->sign.renewed);
  if (age > -kFreshSeconds && age < kFreshSeconds) return known(LockLook::State::alive);
  const bool sign = gives_a_sign(path, patience_seconds, holder);
  if (!holder) return look;  // given back in between
  if (sign) return known(LockLook::State::alive);
  const bool alive = holder->owner && is_alive(*holder->owner, here);
  const bool expired = !alive && holder->silent_seconds >= kLockExpiresSeconds;
  return known(expired ? LockLook::State::ended : LockLook::State::silent);
}

}  // namespace t3d
