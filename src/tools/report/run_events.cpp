// run.log, read for what happened between the steps.
#include <charconv>
#include <deque>
#include <optional>
#include <string_view>

#include "core/types.hpp"
#include "core/utf8.hpp"
#include "record/log/log_lines.hpp"
#include "tools/report/run_facts.hpp"

namespace t3d {
namespace {

constexpr std::size_t kMostEvents = 2000, kMostBytes = 1000;

/// The number at the beginning of `text`.
std::optional<index_t> number_at(std::string_view text) {
  index_t number = 0;
  const auto [end, reason] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (reason != std::errc{} || number < 0) return std::nullopt;
  return number;
}

std::optional<index_t> number_after(std::string_view line, std::string_view mark) {
  const std::size_t at = line.rfind(mark);
  if (at == std::string_view::npos) return std::nullopt;
  return number_at(line.substr(at + mark.size()));
}

struct RunEvent {
  index_t step = 0;
  const char* kind = nullptr;
  std::string_view text;
};

/// "checkpoint DIR/step-00000040 in 0.15 s ...": as the saver says that one is published.
std::optional<RunEvent> checkpoint_event(std::string_view line) {
  const std::size_t end = line.find(" in ");
  if (!line.starts_with("checkpoint ") || end == std::string_view::npos) return std::nullopt;
  const auto step = number_after(line.substr(0, end), "step-");
  if (!step) return std::nullopt;
  return RunEvent{*step, "checkpoint", line};
}

class EventFinder {
 public:
  /// What the line tells, if anything.
  std::optional<RunEvent> hear(std::string_view line) {
    if (line.starts_with("step ")) {
      step_ = number_at(line.substr(5)).value_or(step_);
      return std::nullopt;
    }
    if (line.starts_with("---- ")) {
      step_ = number_after(line, " start at step ").value_or(step_);
      return RunEvent{step_, "start", line.substr(5)};
    }
    if (line.starts_with("warning: ")) return RunEvent{step_, "warning", line.substr(9)};
    if (line.starts_with("error: ")) return RunEvent{step_, "error", line.substr(7)};
    if (is_plan(line)) return RunEvent{step_, "plan", line};
    return checkpoint_event(line);
  }

 private:
  /// Without the plans that were looked at and not taken: "plan: 1 x 2 x 1 (+0.3 %): ...".
  static bool is_plan(std::string_view line) {
    if (line.starts_with("the change of plan cost ")) return true;
    if (!line.starts_with("plan")) return false;
    const std::size_t colon = line.find(": ");
    return colon != std::string_view::npos && line.find(" (+") == std::string_view::npos;
  }

  index_t step_ = 0;
};

}  // namespace

ReportJson read_run_events(const std::string& dir) {
  const std::string path = dir + "/run.log";
  if (!path_exists(path)) return ReportJson::array();
  LogLines reader(path);
  EventFinder finder;
  std::deque<ReportJson> events;
  while (const auto line = reader.next()) {
    const auto event = finder.hear(*line);
    if (!event) continue;
    if (events.size() == kMostEvents) events.pop_front();
    events.push_back({{"step", event->step},
                      {"kind", event->kind},
                      {"text", printable(event->text, kMostBytes)}});
  }
  ReportJson list = ReportJson::array();
  for (ReportJson& event : events) list.push_back(std::move(event));
  return list;
}

}  // namespace t3d
