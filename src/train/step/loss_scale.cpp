#include "train/step/loss_scale.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace t3d {
namespace {

constexpr double kFirst = 65536, kLargest = 0x1p24;
constexpr int kStepsToGrow = 2000;

}  // namespace

LossScale::LossScale(double given, DType activation) {
  dynamic_ = activation == DType::f16 && given == 0;
  value_ = given > 0 ? given : dynamic_ ? kFirst : 1.0;
}

bool LossScale::learn(bool finite) {
  if (!dynamic_) return true;
  if (!finite) {
    clean_steps_ = 0;
    value_ /= 2;
    return value_ >= 1;
  }
  if (++clean_steps_ < kStepsToGrow || value_ >= kLargest) return true;
  clean_steps_ = 0;
  value_ *= 2;
  return true;
}

std::string LossScale::text() const { return fmt::format("{} {}", value_, clean_steps_); }

void LossScale::set(const std::string& text) {
  double value = 0;
  int clean = 0;
  if (!dynamic_ || std::sscanf(text.c_str(), "%lf %d", &value, &clean) != 2) return;
  value_ = value;
  clean_steps_ = clean;
}

}  // namespace t3d
