#include "io/lock/silence.hpp"

#include <algorithm>
#include <chrono>

namespace t3d {

double Silence::look(const LifeSign& sign, double now_seconds) {
  if (last_ == sign)
    seconds_ += std::clamp(now_seconds - looked_, 0.0, kRenewalSeconds);
  else
    seconds_ = 0;
  last_ = sign;
  looked_ = now_seconds;
  return seconds_;
}

double Silence::look(const LifeSign& sign) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return look(sign, std::chrono::duration<double>(now).count());
}

}  // namespace t3d
