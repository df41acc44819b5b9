#include "record/log/step_scalars.hpp"

#include <cmath>

namespace t3d {

std::vector<std::pair<std::string, double>> step_scalars(const StepRecord& r) {
  std::vector<std::pair<std::string, double>> scalars;
  const auto add = [&](const std::string& name, double number) {
    if (std::isfinite(number)) scalars.emplace_back(name, number);
  };
  add("loss", r.loss);
  for (const NamedLoss& set : r.validations)
    add(valid_key(set) + (set.name.empty() ? "" : "/" + set.name), set.loss);
  add("grad_norm", r.grad_norm);
  add("lr", r.lr);
  add("seconds", r.seconds);
  add("predicted_seconds", r.predicted_seconds);
  add("tokens", r.tokens);
  add("epochs", r.epochs);
  add("tokens_per_second", r.tokens_per_second);
  add("mfu", r.mfu);
  add("mfu_of_peak", r.mfu_of_peak);
  add("imbalance", r.imbalance);
  add("comm_fraction", r.comm_fraction);
  add("adasum_gain", r.gain);
  add("noise_scale_sequences", r.noise_sequences);
  if (r.loss_scale) add("loss_scale", *r.loss_scale);
  add("memory_bytes", static_cast<double>(r.memory_bytes));
  for (const auto& [phase, seconds] : r.phase_seconds) add("phase_seconds/" + phase, seconds);
  for (const auto& [axis, bytes] : r.bytes_by_axis)
    add("bytes_by_axis/" + axis, static_cast<double>(bytes));
  return scalars;
}

}  // namespace t3d
