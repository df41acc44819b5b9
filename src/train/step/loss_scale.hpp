// The factor that keeps small gradients within fp16's range: constant, or found by trial
// (Micikevicius et al. 2018, section 3.2): half of it after a step whose gradient was not finite,
// twice of it after many steps in which all were.
#pragma once
#include <string>

#include "core/dtype.hpp"
#include "core/options.hpp"

namespace t3d {

class LossScale {
 public:
  /// `given`: a constant scale; 0 = 1, or found by trial where activations are fp16.
  LossScale(double given, DType activation);

  [[nodiscard]] double value() const { return value_; }
  [[nodiscard]] bool dynamic() const { return dynamic_; }
  /// After every step. False: it cannot become any smaller, so the scale is not the cause.
  [[nodiscard]] bool learn(bool finite);

  /// For checkpoints.
  [[nodiscard]] std::string text() const;
  void set(const std::string& text);

 private:
  double value_ = 1;
  bool dynamic_ = false;
  int clean_steps_ = 0;
};

}  // namespace t3d
