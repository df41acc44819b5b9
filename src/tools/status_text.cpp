// The texts of a run's status: lines for people, an object for programs.
#include <fmt/chrono.h>

#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/counted.hpp"
#include "core/utf8.hpp"
#include "record/log/step_record.hpp"
#include "run/run_status.hpp"

namespace t3d {
namespace {

using StatusJson = nlohmann::ordered_json;

constexpr std::size_t kColumns = 80, kIndent = 14, kMostBytes = 5000;

std::string ago(double now, double then) { return clock_time(std::max(0.0, now - then)) + " ago"; }

std::string date(double seconds) {
  if (!(std::abs(seconds) < 1e11)) return "-";
  const auto time = static_cast<std::time_t>(seconds);
  std::tm local{};
  return localtime_r(&time, &local) == nullptr ? "-" : fmt::format("{:%Y-%m-%d %H:%M:%S}", local);
}

/// A name, and beside it the text on lines of kColumns; words stay whole.
std::string row(const std::string& name, const std::string& text) {
  std::string line = fmt::format("  {:<{}}", name, kIndent - 2), rows;
  bool first = true;  // word of its line
  std::string words = printable(text, kMostBytes);
  for (std::size_t at = 0; at < words.size();) {
    const std::size_t end = std::min(words.find(' ', at), words.size());
    if (!first && line.size() + 1 + end - at > kColumns) {
      rows += line + "\n";
      line = std::string(kIndent, ' ');
      first = true;
    }
    line += (first ? "" : " ") + words.substr(at, end - at);
    first = false;
    at = end + 1;
  }
  return rows + line + "\n";
}

std::string short_line(const std::string& text) {
  const std::size_t most = kColumns - kIndent;
  return text.size() <= most ? text : printable(text.substr(0, most - 3), kColumns) + "...";
}

std::string state_row(const RunStatus& s) {
  std::string text = name_of(s.state);
  if (s.state == RunState::starting || s.state == RunState::running) text += ": " + s.lock.owner;
  if (s.state == RunState::silent)
    text +=
        fmt::format(": no sign of life for at least {:.0f} s of {}: suspended, or its node is gone",
                    s.lock.silent_seconds, s.lock.owner);
  if (s.state == RunState::done || s.state == RunState::stopped || s.state == RunState::failed) {
    text += fmt::format(" ({})", static_cast<int>(s.exit->code));
    if (s.exit_time) text += " " + ago(s.now, *s.exit_time);
    text += ": " + s.exit->reason;
    if (s.exit->goes_on)
      text += s.exit->requeues ? "; puts itself back into the queue" : "; to be started again";
  }
  if (s.state == RunState::killed) {
    text += std::string(": ") + kNoWord;
    if (s.lock.state == LockLook::State::ended) text += ", " + s.lock.owner;
  }
  return row("state", text);
}

std::string step_rows(const RunStatus& s) {
  if (!s.last) return s.state == RunState::not_begun ? "" : row("step", "none in log.jsonl");
  std::string text = fmt::format("{}", s.last->step);
  if (s.last->steps && *s.last->steps > 0)
    text += fmt::format(
        " of {} ({:.1f} %)", *s.last->steps,
        100.0 * static_cast<double>(s.last->step) / static_cast<double>(*s.last->steps));
  if (s.alive() && s.log_time) text += ", log.jsonl written " + ago(s.now, *s.log_time);
  std::string rows = row("step", text);
  text = s.last->loss ? fmt::format("{:.4f}", *s.last->loss) : "-";
  rows += row("loss", text);
  std::string name = "validation";
  for (const std::optional<Validated>& one : {s.validated, s.validated_whole})
    if (one)
      rows += row(std::exchange(name, ""), fmt::format("{:.4f} at step {}{}", one->loss, one->step,
                                                       one->whole ? ", of the whole set" : ""));
  if (!s.median_seconds) return rows;
  text = short_time(*s.median_seconds) + " a step";
  if (s.median_rate) text += ", " + short_count(*s.median_rate) + " tok/s";
  text += fmt::format(" (medians of {})", s.median_of);
  rows += row("speed", text);
  const auto left = s.seconds_left();
  if (!left || s.last->step == s.last->steps) return rows;
  text = clock_time(*left) + " of steps";
  if (s.state == RunState::running) text += ", until " + date(s.now + *left);
  return rows + row("left", text);
}

std::string life_text(const LifeRecord& life) {
  std::string text = life.why;
  if (life.from_step) text += fmt::format("; from step {}", *life.from_step);
  if (life.step) text += fmt::format(" to {}", *life.step);
  if (life.first_step_seconds)
    text += fmt::format("; first step after {:.1f} s", *life.first_step_seconds);
  if (life.reason)
    text += (life.code ? fmt::format("; ended with {}: ", *life.code) : "; ") +
            life.reason->substr(0, life.reason->find('\n'));
  if (life.lost_steps) text += "; " + counted(*life.lost_steps, "step") + " lost";
  return text;
}

std::string life_rows(const RunStatus& s) {
  const index_t count = s.life_count();
  if (count == 0) return "";
  std::string rows = row("lives", std::to_string(count));
  for (const LifeRecord& life : s.lives)
    rows += row(fmt::format("  {}", life.life), life_text(life));
  const bool open = s.life && (s.lives.empty() || s.life->life > s.lives.back().life);
  return open ? rows + row(fmt::format("  {}", s.life->life), life_text(*s.life)) : rows;
}

template <class T>
StatusJson or_null(const std::optional<T>& value) {
  return value ? StatusJson(*value) : StatusJson(nullptr);
}

StatusJson life_json(const LifeRecord& life) { return StatusJson::parse(format_life(life)); }

StatusJson lives_json(const RunStatus& s) {
  StatusJson list = StatusJson::array();
  for (const LifeRecord& life : s.lives) list.push_back(life_json(life));
  return list;
}

}  // namespace

std::string status_text(const RunStatus& s, bool cut) {
  std::string text = printable(s.dir) + "\n" + state_row(s) + step_rows(s);
  if (s.newest)
    text += row("checkpoint", fmt::format("step {}, {}: {}", s.newest->step,
                                          ago(s.now, s.newest->written), s.newest->path));
  else if (s.state != RunState::not_begun)
    text += row("checkpoint", "none");
  if (s.missing.count() > 0) text += row("log", "log.jsonl lacks " + s.missing.text());
  text += life_rows(s);
  for (std::size_t at = 0; at < s.events.size(); ++at)
    text += row(at == 0 ? "events" : "", cut ? short_line(s.events[at]) : s.events[at]);
  for (const std::string& fault : s.faults) text += row("not read", fault);
  return text;
}

std::string status_json(const RunStatus& s) {
  const std::optional<double> left = s.seconds_left();
  const auto age = [&](const std::optional<double>& time) {
    return time ? StatusJson(std::max(0.0, s.now - *time)) : StatusJson(nullptr);
  };
  StatusJson json{{"dir", s.dir}, {"state", name_of(s.state)}, {"alive", s.alive()}};
  json["owner"] = s.lock.owner.empty() ? StatusJson(nullptr) : StatusJson(s.lock.owner);
  json["sign_of_life_seconds"] =
      s.lock.owner.empty() ? StatusJson(nullptr) : StatusJson(std::max(0.0, s.lock.silent_seconds));
  const LoggedStep none, &last = s.last ? *s.last : none;
  json["step"] = s.last ? StatusJson(last.step) : StatusJson(nullptr);
  json["steps"] = or_null(last.steps);
  json["loss"] = or_null(last.loss);
  json["valid_loss"] = s.validated ? StatusJson(s.validated->loss) : StatusJson(nullptr);
  json["valid_loss_whole"] =
      s.validated_whole ? StatusJson(s.validated_whole->loss) : StatusJson(nullptr);
  json["tokens_per_second"] = or_null(s.median_rate);
  json["median_step_seconds"] = or_null(s.median_seconds);
  json["log_age_seconds"] = age(s.log_time);
  json["left_seconds"] = or_null(left);
  json["predicted_end"] =
      left && s.state == RunState::running ? StatusJson(s.now + *left) : StatusJson(nullptr);
  json["checkpoint"] = nullptr;
  if (s.newest)
    json["checkpoint"] = {{"step", s.newest->step},
                          {"lineage", s.newest->lineage},
                          {"path", s.newest->path},
                          {"age_seconds", age(s.newest->written)}};
  json["missing_steps"] = StatusJson::array();
  for (const auto& [first, end] : s.missing.ranges()) json["missing_steps"].push_back({first, end});
  json["exit"] = nullptr;
  if (s.exit)
    json["exit"] = {{"code", static_cast<int>(s.exit->code)},
                    {"reason", s.exit->reason},
                    {"step", s.exit->step},
                    {"checkpoint", or_null(s.exit->checkpoint)},
                    {"continue", s.exit->goes_on},
                    {"requeues", s.exit->requeues}};
  json["lives"] = s.life_count();
  json["life"] = s.life ? life_json(*s.life) : StatusJson(nullptr);
  json["last_lives"] = lives_json(s);
  json["events"] = s.events;
  json["not_read"] = s.faults;
  return json.dump(-1, ' ', false, StatusJson::error_handler_t::replace) + "\n";
}

}  // namespace t3d
