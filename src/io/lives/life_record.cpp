#include "io/lives/life_record.hpp"

#include <algorithm>
#include <cmath>

#include "io/json_fields.hpp"

namespace t3d {
namespace {

using LifeJson = nlohmann::ordered_json;

template <class T>
LifeJson or_null(const std::optional<T>& value) {
  return value ? LifeJson(*value) : LifeJson(nullptr);
}

constexpr index_t kMostLives = 1'000'000'000;

double milliseconds(double seconds) { return std::round(1000 * seconds) / 1000; }

std::optional<index_t> highest(const std::optional<index_t>& a, const std::optional<index_t>& b) {
  return a && b ? std::max(*a, *b) : a ? a : b;
}

}  // namespace

std::string format_life(const LifeRecord& life) {
  const auto time = [](const std::optional<double>& seconds) {
    return seconds ? LifeJson(milliseconds(*seconds)) : LifeJson(nullptr);
  };
  const LifeJson json{{"life", life.life},
                      {"job", or_null(life.job)},
                      {"restart", life.restart},
                      {"nodes", life.nodes},
                      {"ranks", life.ranks},
                      {"started", milliseconds(life.started)},
                      {"why", life.why},
                      {"lineage", or_null(life.lineage)},
                      {"from_step", or_null(life.from_step)},
                      {"checkpoint", or_null(life.checkpoint)},
                      {"first_step_seconds", time(life.first_step_seconds)},
                      {"ended", time(life.ended)},
                      {"code", or_null(life.code)},
                      {"reason", or_null(life.reason)},
                      {"step", or_null(life.step)},
                      {"saved_step", or_null(life.saved_step)},
                      {"lost_steps", or_null(life.lost_steps)}};
  return json.dump(-1, ' ', false, LifeJson::error_handler_t::replace);
}

std::optional<LifeRecord> parse_life(std::string_view line) {
  const auto json = parse_object(line);
  const auto number = json ? count_of(*json, "life") : std::nullopt;
  if (!number || *number < 1 || *number > kMostLives) return std::nullopt;
  LifeRecord life;
  life.life = *number;
  life.job = text_of(*json, "job");
  life.restart = count_of(*json, "restart").value_or(0);
  life.nodes = count_of(*json, "nodes").value_or(0);
  life.ranks = count_of(*json, "ranks").value_or(0);
  life.started = number_of(*json, "started").value_or(0);
  life.why = text_of(*json, "why").value_or("");
  life.lineage = count_of(*json, "lineage");
  life.from_step = count_of(*json, "from_step");
  life.checkpoint = text_of(*json, "checkpoint");
  life.first_step_seconds = number_of(*json, "first_step_seconds");
  life.ended = number_of(*json, "ended");
  if (const auto code = count_of(*json, "code"); code && *code <= 255)
    life.code = static_cast<int>(*code);
  life.reason = text_of(*json, "reason");
  life.step = count_of(*json, "step");
  life.saved_step = count_of(*json, "saved_step");
  life.lost_steps = count_of(*json, "lost_steps");
  return life;
}

LifeRecord closed_life(LifeRecord life, const LifeTraces& traces) {
  if (traces.exit) {
    life.ended = traces.exit_time;
    life.code = static_cast<int>(traces.exit->code);
    life.reason = traces.exit->reason;
    life.step = traces.exit->step;
    life.saved_step = traces.exit->checkpoint;
    return life;
  }
  life.reason = kNoWord;
  // Until it has gone on from somewhere, the log is that of the life before.
  if (!life.from_step) return life;
  if (life.checkpoint) life.saved_step = highest(life.saved_step, life.from_step);
  life.saved_step = highest(life.saved_step, traces.saved_step);
  // Without a log (log.json = false) nobody knows how many steps followed the first.
  if (traces.logged_step || !life.first_step_seconds)
    life.step = highest(highest(life.from_step, traces.logged_step), life.saved_step);
  return life;
}

bool has_progressed(const LifeRecord& life) {
  return life.saved_step.value_or(-1) > life.from_step.value_or(0);
}

bool was_cut_short(const LifeRecord& life) {
  return life.code == static_cast<int>(ExitCode::retry) && !life.first_step_seconds &&
         life.reason.value_or("").rfind("asked to stop", 0) == 0;
}

std::optional<index_t> lost_steps(const LifeRecord& life, index_t next_from, bool chosen) {
  if (!life.from_step) return 0;  // it did none
  if (!life.step) return std::nullopt;
  const bool other = !life.saved_step || next_from > *life.saved_step;
  const index_t kept = chosen || other ? life.saved_step.value_or(*life.from_step) : next_from;
  return std::max<index_t>(0, *life.step - kept);
}

}  // namespace t3d
