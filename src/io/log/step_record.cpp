#include "io/log/step_record.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

namespace t3d {
namespace {

/// Three significant digits: 1.27, 12.7, 127.
std::string three_digits(double value) {
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}", value, decimals);
}

std::string number(const char* format, double value) {
  return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : "-";
}

/// Longer lists are left out of log.jsonl, which has a line for every step.
constexpr std::size_t kListedRanks = 256;

/// Milliseconds with four digits.
double milliseconds(double seconds) {
  return std::isfinite(seconds) ? std::stod(fmt::format("{:.4g}", 1000 * seconds)) : seconds;
}

/// {"own": [ms of each rank], ...}
nlohmann::ordered_json times_json(const StepRecord& record) {
  const std::vector<RankTimes>& ranks = record.ranks;
  nlohmann::ordered_json json;
  const auto list = [&](const char* name, double RankTimes::*time) {
    for (const RankTimes& rank : ranks) json[name].push_back(milliseconds(rank.*time));
  };
  list("own", &RankTimes::own);
  list("cpu", &RankTimes::cpu);
  list("matmul", &RankTimes::matmul);
  list("attention", &RankTimes::attention);
  list("other", &RankTimes::other);
  json["measured_step"] = record.measured.step;
  json["measured_slabs"] = record.measured.slabs;
  return json;
}

std::string percent(double fraction) { return number("{:.0f}%", 100 * fraction); }

}  // namespace

std::string short_count(double count) {
  if (!std::isfinite(count)) return "-";
  constexpr std::array units{"", "k", "M", "G", "T", "P"};
  std::size_t unit = 0;
  while (count >= 999.5 && unit + 1 < units.size()) {
    count /= 1000;
    ++unit;
  }
  return three_digits(count) + units[unit];
}

std::string short_bytes(double bytes) {
  constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (bytes >= 1023.5 && unit + 1 < units.size()) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : three_digits(bytes) + " " + units[unit];
}

std::string short_time(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  if (seconds < 9.9995)
    return seconds < 0.00995 ? fmt::format("{:.2f} ms", 1000 * seconds)
                             : fmt::format("{:.0f} ms", 1000 * seconds);
  return three_digits(seconds) + " s";
}

std::string clock_time(double seconds) {
  if (!std::isfinite(seconds) || seconds > 1e9) return "-";
  const auto all = static_cast<index_t>(std::max(seconds, 0.0) + 0.5);
  const index_t days = all / 86400, hours = all / 3600 % 24, minutes = all / 60 % 60,
                rest = all % 60;
  if (days > 0) return fmt::format("{}d {:02}:{:02}:{:02}", days, hours, minutes, rest);
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, rest);
  return fmt::format("{:02}:{:02}", minutes, rest);
}

std::string step_line(const StepRecord& r, double seconds_left) {
  const std::string steps = fmt::format("{}", r.steps);
  const bool has_peak = std::isfinite(r.mfu_of_peak);
  std::string line = fmt::format(
      "step {:<{}}  loss {:<6}  norm {:<4}  lr {:<8}  {:<6}  {} tok/s  mfu {:<3}{}  imb {:<3}  "
      "comm {:<3}  left {}",
      fmt::format("{}/{}", r.step, r.steps), 2 * steps.size() + 1, number("{:.4f}", r.loss),
      number("{:.2f}", r.grad_norm), number("{:.2e}", r.lr), short_time(r.seconds),
      short_count(r.tokens_per_second), percent(r.mfu),
      has_peak ? fmt::format("  peak {:<3}", percent(r.mfu_of_peak)) : "", percent(r.imbalance),
      percent(r.comm_fraction), clock_time(seconds_left));
  if (std::isfinite(r.gain)) line += fmt::format("  gain {:.2f}", r.gain);
  if (r.valid_loss) line += fmt::format("  valid {}", number("{:.4f}", *r.valid_loss));
  for (const NamedLoss& set : r.named_valid_losses)
    line += fmt::format("  valid {} {}", set.name, number("{:.4f}", set.loss));
  return line;
}

std::string step_json(const StepRecord& r) {
  nlohmann::ordered_json json;  // in the order below; a number that is not finite becomes null
  json["step"] = r.step;
  json["steps"] = r.steps;
  json["loss"] = r.loss;
  if (r.valid_loss) json["valid_loss"] = *r.valid_loss;
  for (const NamedLoss& set : r.named_valid_losses) json["valid_losses"][set.name] = set.loss;
  json["grad_norm"] = r.grad_norm;
  json["lr"] = r.lr;
  json["seconds"] = r.seconds;
  if (std::isfinite(r.predicted_seconds)) json["predicted_seconds"] = r.predicted_seconds;
  json["tokens"] = r.tokens;
  json["tokens_per_second"] = r.tokens_per_second;
  json["mfu"] = r.mfu;
  if (std::isfinite(r.mfu_of_peak)) json["mfu_of_peak"] = r.mfu_of_peak;
  json["imbalance"] = r.imbalance;
  json["comm_fraction"] = r.comm_fraction;
  if (!r.ranks.empty() && r.ranks.size() <= kListedRanks) json["rank_milliseconds"] = times_json(r);
  if (!r.slab_sequences.empty() && r.slab_sequences.size() <= kListedRanks)
    json["slab_sequences"] = r.slab_sequences;
  if (r.emulated) json["emulated"] = true;
  const bool has_gain = std::isfinite(r.gain), has_noise = std::isfinite(r.gradient_noise);
  if (has_gain) json["adasum_gain"] = r.gain;
  if (has_gain || has_noise) json["noise_scale_sequences"] = r.noise_sequences;
  if (has_noise) {
    json["gradient_signal"] = r.gradient_signal;
    json["gradient_noise"] = r.gradient_noise;
  }
  if (has_gain) json["left_out"] = r.left_out;
  if (r.loss_scale) json["loss_scale"] = *r.loss_scale;
  json["phase_seconds"] = r.phase_seconds;
  json["bytes_by_axis"] = r.bytes_by_axis;
  json["memory_bytes"] = r.memory_bytes;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace t3d
