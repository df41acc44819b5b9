#include "run/run_status.hpp"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "config/config_load.hpp"
#include "core/error.hpp"
#include "core/robust.hpp"
#include "io/lives/life_files.hpp"
#include "io/output.hpp"
#include "io/posix_file.hpp"
#include "record/log/run_record.hpp"
#include "run/setup.hpp"

namespace t3d {
namespace {

constexpr index_t kSteps = 50;      // in the median
constexpr index_t kLives = 3;       // shown
constexpr index_t kLogLines = 400;  // of run.log, looked through
constexpr std::size_t kEvents = 5, kNamedRuns = 6;
constexpr index_t kMostRecordBytes = 4 << 20;  // of run.json; a longer one is not looked at

/// What a training, or the start of one, leaves in its folder.
constexpr std::array kRunFiles{"run.log",     "log.jsonl", "exit.json",     "life.json",
                               "lives.jsonl", "plan.toml", "resolved.toml", "ckpt"};

bool is_run(const std::string& dir) {
  return std::any_of(kRunFiles.begin(), kRunFiles.end(),
                     [&](const char* name) { return path_exists(dir + "/" + name); });
}

/// A folder of runs is easily named in the place of one of them.
std::string runs_inside(const std::string& dir) {
  std::vector<std::string> runs;
  for (const std::string& name : list_folder(dir))
    if (is_folder(dir + "/" + name) && is_run(dir + "/" + name)) runs.push_back(dir + "/" + name);
  if (runs.empty()) return "";
  std::sort(runs.begin(), runs.end());
  const std::size_t shown = std::min(runs.size(), kNamedRuns);
  const std::string more =
      runs.size() > shown ? fmt::format(" and {} more", runs.size() - shown) : "";
  runs.resize(shown);
  return fmt::format("; runs are in {}{}", fmt::join(runs, ", "), more);
}

void check_is_run(const std::string& dir) {
  if (!path_exists(dir)) throw_error(ExitCode::no_input, "there is no {}", dir);
  if (!is_folder(dir)) throw_error(ExitCode::no_input, "{} is no folder", dir);
  if (is_run(dir)) return;
  throw_error(ExitCode::no_input, "{} is no run folder: it has no run.log, no log.jsonl, no ckpt{}",
              dir, runs_inside(dir));
}

/// "plan 9c1fc8b11d588b19: mesh ...", "plan: made anew: ...", "warning: ...", "error: ..."
bool is_event(const std::string& line) {
  for (const char* start : {"warning: ", "error: ", "plan: "})
    if (line.starts_with(start)) return true;
  return line.starts_with("plan ") && line.find(": ") != std::string::npos;
}

void look_at_steps(RunStatus& status) {
  const std::vector<LoggedStep> steps = last_steps(status.dir, kSteps);
  if (steps.empty()) return;
  status.last = steps.back();
  status.log_time = file_time(status.dir + "/log.jsonl");
  std::vector<double> seconds, rates;
  for (const LoggedStep& step : steps) {
    if (step.seconds && *step.seconds >= 0) seconds.push_back(*step.seconds);
    if (step.tokens_per_second) rates.push_back(*step.tokens_per_second);
    if (step.valid_loss) status.validated = {*step.valid_loss, step.step, false};
    if (step.valid_loss_whole) status.validated_whole = {*step.valid_loss_whole, step.step, true};
  }
  status.median_of = std::ssize(seconds);
  if (!seconds.empty()) status.median_seconds = median_of(std::move(seconds));
  if (!rates.empty()) status.median_rate = median_of(std::move(rates));
}

/// DIR/ckpt, or where the input of the run says that its checkpoints are.
std::string checkpoint_folder(const std::string& dir) {
  const std::string usual = dir + "/ckpt", input = dir + "/resolved.toml";
  if (path_exists(usual) || !path_exists(input)) return usual;
  return parse_config(read_text_file(input), input).checkpoint.dir;
}

/// Where the lineage is known that log.jsonl is of.
std::optional<index_t> saved_step_of(const RunStatus& status, const std::string& checkpoints) {
  std::optional<index_t> lineage;
  if (!status.lives.empty()) lineage = status.lives.back().lineage;
  if (status.life) lineage = status.life->lineage;
  if (!lineage) return std::nullopt;
  const auto saved = newest_published(checkpoints, lineage);
  if (!saved || saved->lineage != *lineage) return std::nullopt;
  return saved->step;
}

void look_at_events(RunStatus& status) {
  for (std::string& line : last_lines(status.dir + "/run.log", kLogLines))
    if (is_event(line)) status.events.push_back(std::move(line));
  if (status.events.size() > kEvents)
    status.events.erase(status.events.begin(), status.events.end() - kEvents);
}

void look_at_record(RunStatus& status) {
  const std::string path = status.dir + "/run.json";
  const index_t size = file_size(path);
  if (size < 0 || size > kMostRecordBytes) return;
  const std::string fault = run_record_fault(read_text_file(path));
  if (!fault.empty()) status.faults.push_back(path + " is no record of a run: " + fault);
}

RunState state_of(const RunStatus& status) {
  using Lock = LockLook::State;
  if (status.lock.state == Lock::silent) return RunState::silent;
  if (status.lock.state == Lock::alive) {
    const bool stepped = !status.life || status.life->first_step_seconds;
    return stepped && status.last ? RunState::running : RunState::starting;
  }
  if (status.exit) {
    if (status.exit->code == ExitCode::done) return RunState::done;
    return status.exit->code == ExitCode::retry ? RunState::stopped : RunState::failed;
  }
  const bool begun = status.life || status.last || status.lock.state == Lock::ended ||
                     !status.lives.empty() || path_exists(status.dir + "/run.log");
  return begun ? RunState::killed : RunState::not_begun;
}

}  // namespace

index_t RunStatus::life_count() const {
  const index_t ended = lives.empty() ? 0 : lives.back().life;
  return life ? std::max(life->life, ended) : ended;
}

std::optional<Validated> RunStatus::newest_validation() const {
  if (!validated || !validated_whole) return validated ? validated : validated_whole;
  return validated_whole->step >= validated->step ? validated_whole : validated;
}

std::optional<double> RunStatus::seconds_left() const {
  if (!last || !last->steps || !median_seconds || *last->steps < last->step) return std::nullopt;
  return static_cast<double>(*last->steps - last->step) * *median_seconds;
}

const char* name_of(RunState state) {
  switch (state) {
    case RunState::not_begun: return "not begun";
    case RunState::starting: return "starting";
    case RunState::running: return "running";
    case RunState::silent: return "silent";
    case RunState::done: return "done";
    case RunState::stopped: return "stopped";
    case RunState::failed: return "failed";
    case RunState::killed: return "killed";
  }
  return "?";
}

RunStatus look_at_run(const std::string& dir) {
  check_is_run(dir);
  RunStatus status;
  status.dir = dir;
  const auto attempt_to = [&](const auto& look) {
    try {
      look();
    } catch (const std::exception& error) {
      status.faults.emplace_back(error.what());
    }
  };
  attempt_to([&] { status.lock = look_at_lock(dir); });
  attempt_to([&] {
    status.exit = read_exit_record(dir);
    if (status.exit) status.exit_time = file_time(dir + "/exit.json");
  });
  attempt_to([&] { look_at_steps(status); });
  std::string checkpoints;
  attempt_to([&] {
    checkpoints = checkpoint_folder(dir);
    status.newest = newest_published(checkpoints);
  });
  attempt_to([&] { status.life = read_open_life(dir); });
  attempt_to([&] { status.lives = last_lives(dir, kLives); });
  attempt_to([&] { status.saved_step = saved_step_of(status, checkpoints); });
  attempt_to([&] { look_at_events(status); });
  attempt_to([&] { look_at_record(status); });
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  status.now = std::chrono::duration<double>(now).count();
  status.state = state_of(status);
  if (status.life && !status.alive()) status.life = closed_as_found(*status.life, dir, checkpoints);
  return status;
}

// The last step's checkpoint stands before the evaluation after it, the step's line behind both.
std::optional<index_t> logged_step_due(const RunStatus& status) {
  if (!status.saved_step) return std::nullopt;
  return *status.saved_step - (status.alive() ? 1 : 0);
}

void add_missing(RunStatus& status, MissingSteps missing) {
  if (const auto due = logged_step_due(status)) missing.expect_up_to(*due);
  status.missing = std::move(missing);
}

}  // namespace t3d
