#include "record/log/step_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "io/json_fields.hpp"

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

constexpr double kMostWhole = 9e15;  // a double has all whole numbers up to here

/// Milliseconds with four digits.
double milliseconds(double seconds) {
  return std::isfinite(seconds) ? std::stod(fmt::format("{:.4g}", 1000 * seconds)) : seconds;
}

/// Of an object in the record; what is no number is left out.
std::map<std::string, double> numbers_under(const nlohmann::json& record, const char* key) {
  std::map<std::string, double> numbers;
  const auto found = record.find(key);
  if (found == record.end() || !found->is_object()) return numbers;
  for (const auto& [name, value] : found->items())
    if (value.is_number()) numbers[name] = value.get<double>();
  return numbers;
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

const char* valid_key(const NamedLoss& set) {
  if (set.name.empty()) return set.whole ? "valid_loss_whole" : "valid_loss";
  return set.whole ? "valid_losses_whole" : "valid_losses";
}

std::string step_line(const StepRecord& r, double seconds_left) {
  const std::string steps = fmt::format("{}", r.steps);
  const bool has_peak = std::isfinite(r.mfu_of_peak);
  std::string line = fmt::format(
      "step {:<{}}  loss {:<6}  norm {:<4}  lr {:<8}  {:<6}  {} tok/s  mfu {:<3}{}  imb {:<3}  "
      "comm {:<3}{}  left {}",
      fmt::format("{}/{}", r.step, r.steps), 2 * steps.size() + 1, number("{:.4f}", r.loss),
      number("{:.2f}", r.grad_norm), number("{:.2e}", r.lr), short_time(r.seconds),
      short_count(r.tokens_per_second), percent(r.mfu),
      has_peak ? fmt::format("  peak {:<3}", percent(r.mfu_of_peak)) : "", percent(r.imbalance),
      percent(r.comm_fraction),
      std::isfinite(r.epochs) ? fmt::format("  epoch {:.2f}", r.epochs) : "",
      clock_time(seconds_left));
  if (std::isfinite(r.gain)) line += fmt::format("  gain {:.2f}", r.gain);
  for (const NamedLoss& set : r.validations)
    line += fmt::format("  {}{}{} {}", set.whole ? "whole valid" : "valid",
                        set.name.empty() ? "" : " ", set.name, number("{:.4f}", set.loss));
  return line;
}

std::string step_json(const StepRecord& r) {
  nlohmann::ordered_json json;  // in the order below; a number that is not finite becomes null
  json["step"] = r.step;
  json["steps"] = r.steps;
  json["loss"] = r.loss;
  for (const NamedLoss& set : r.validations)
    if (set.name.empty())
      json[valid_key(set)] = set.loss;
    else
      json[valid_key(set)][set.name] = set.loss;
  json["grad_norm"] = r.grad_norm;
  json["lr"] = r.lr;
  json["seconds"] = r.seconds;
  if (std::isfinite(r.predicted_seconds)) json["predicted_seconds"] = r.predicted_seconds;
  json["tokens"] = r.tokens;
  if (std::isfinite(r.epochs)) json["epochs"] = r.epochs;
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

std::optional<StepRecord> parse_step(std::string_view line) {
  const auto json = parse_object(line);
  const auto step = json ? count_of(*json, "step") : std::nullopt;
  if (!step) return std::nullopt;
  const auto number = [&](const char* key) {
    return number_of(*json, key).value_or(std::numeric_limits<double>::quiet_NaN());
  };
  StepRecord r;
  r.step = *step;
  r.steps = count_of(*json, "steps").value_or(0);
  r.loss = number("loss");
  for (const bool whole : {false, true}) {
    if (const auto loss = number_of(*json, valid_key({"", 0, whole})))
      r.validations.push_back({"", *loss, whole});
    for (const auto& [name, loss] : numbers_under(*json, valid_key({"a name", 0, whole})))
      r.validations.push_back({name, loss, whole});
  }
  r.grad_norm = number("grad_norm");
  r.lr = number("lr");
  r.seconds = number("seconds");
  r.predicted_seconds = number("predicted_seconds");
  r.tokens = number("tokens");
  r.epochs = number("epochs");
  r.tokens_per_second = number("tokens_per_second");
  r.mfu = number("mfu");
  r.mfu_of_peak = number("mfu_of_peak");
  r.imbalance = number("imbalance");
  r.comm_fraction = number("comm_fraction");
  r.gain = number("adasum_gain");
  r.noise_sequences = number("noise_scale_sequences");
  r.loss_scale = number_of(*json, "loss_scale");
  r.memory_bytes = count_of(*json, "memory_bytes").value_or(0);
  r.phase_seconds = numbers_under(*json, "phase_seconds");
  for (const auto& [axis, bytes] : numbers_under(*json, "bytes_by_axis"))
    r.bytes_by_axis[axis] = static_cast<index_t>(std::clamp(bytes, 0.0, kMostWhole));
  return r;
}

}  // namespace t3d
