#include "record/study/run_figures.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <sstream>

#include "core/counted.hpp"
#include "core/error.hpp"
#include "core/robust.hpp"
#include "io/json_fields.hpp"
#include "io/lives/missing_steps.hpp"
#include "io/posix_file.hpp"
#include "record/log/log_lines.hpp"
#include "record/log/run_record.hpp"

namespace t3d {
namespace {

using RunJson = nlohmann::json;

/// Numbers of one key over the steps; those that are not known do not count.
class StepNumbers {
 public:
  void add(const RunJson& step, const char* key) {
    if (const auto number = number_of(step, key)) numbers_[key].push_back(*number);
  }
  [[nodiscard]] double median(const char* key) const {
    const auto found = numbers_.find(key);
    return found == numbers_.end() ? kUnknown : median_of(found->second);
  }

 private:
  std::map<std::string, std::vector<double>> numbers_;
};

[[noreturn]] void damaged(const std::string& path, const std::string& what) {
  throw_error(ExitCode::io, "{}: {}", path, what);
}

RunJson last_life(const std::string& path, RunJson& record) {
  const std::string text = read_text_file(path);
  if (const std::string fault = run_record_fault(text); !fault.empty())
    damaged(path, "is no record of a run: " + fault);
  record = RunJson::parse(text);
  if (record["lives"].empty()) damaged(path, "is no record of a run: it has no life");
  RunJson life = record["lives"].back();
  if (!life.contains("end")) damaged(path, "is no record of a run: its last life has no end");
  if (!life["end"].is_object())
    throw_error(ExitCode::config, "{}: its last life has not ended in order", path);
  return life;
}

std::string shape_of(const RunJson& life) {
  std::vector<std::pair<std::string, index_t>> kinds;
  for (const RunJson& cuboid : life.at("cuboids")) {
    const std::string text = fmt::format("{} x {} x {}", cuboid.at(0).get<index_t>(),
                                         cuboid.at(1).get<index_t>(), cuboid.at(2).get<index_t>());
    if (kinds.empty() || kinds.back().first != text) kinds.emplace_back(text, 0);
    ++kinds.back().second;
  }
  std::string shape;
  for (const auto& [text, count] : kinds)
    shape += (shape.empty() ? "" : " + ") + (count > 1 ? fmt::format("{} * ", count) : "") + text;
  return shape;
}

/// All axes but checkpoints, which are no part of a step; nothing known where there are none.
double sum_of_bytes(const RunJson& by_axis) {
  double sum = 0;
  for (const auto& [axis, bytes] : by_axis.items())
    if (axis != "checkpoint") sum += bytes.get<double>();
  return sum;
}

/// Processors alone may be read; where there are GPUs, both must be. After read_common().
void read_end(const RunJson& end, RunFigures& run) {
  const double steps = end.at("steps").get<double>();
  if (steps <= 0) return;
  run.counted_bytes = sum_of_bytes(end.at("counted_bytes")) / steps;
  run.predicted_bytes = sum_of_bytes(end.at("predicted_bytes")) / steps;
  run.tensor_bytes = number_of(end, "tensor_bytes").value_or(kUnknown);
  run.resident_bytes = number_of(end, "resident_bytes").value_or(kUnknown);
  const auto cpu = number_of(end, "cpu_joules"), gpu = number_of(end, "gpu_joules");
  const double energy_steps = number_of(end, "energy_steps").value_or(0);
  if (cpu && (gpu || run.common.at("device") == "cpu") && energy_steps > 0)
    run.joules = (*cpu + gpu.value_or(0)) / energy_steps;
  run.why_no_energy = text_of(end, "why_no_energy").value_or("");
}

void read_common(const std::string& path, const RunJson& record, const RunJson& life,
                 RunFigures& run) {
  const auto named = [&](const char* table, const RunJson& key) -> const RunJson& {
    return record.at(table).at(key.get<std::string>());
  };
  run.common = telling_keys(named("inputs", life.at("input")).get<std::string>());
  const RunJson& program = named("programs", life.at("program"));
  for (const char* key : {"version", "commit", "compiler", "flags", "build_type"})
    run.program[key] = program.at(key).get<std::string>();
  run.program["build"] = text_of(program, "build").value_or("");  // earlier versions have none
  run.common["data"] = life.at("data_hash").get<std::string>();
  std::set<std::string> processors, devices;
  for (const RunJson& key : life.at("hosts")) {
    const RunJson& host = named("hosts", key);
    processors.insert(fmt::format("{} ({})", host.at("processor").get<std::string>(),
                                  counted(host.at("cores").get<index_t>(), "core")));
  }
  for (const RunJson& device : named("ranks", life.at("ranks")).at("devices"))
    devices.insert(device.get<std::string>());
  if (processors.empty() || devices.empty()) damaged(path, "names no host, or no rank");
  run.common["processor"] = *processors.begin();
  run.common["device"] = *devices.begin();
}

/// The steps that a life has done: those behind `before`, up to `last`.
struct DoneSteps {
  index_t before = 0, last = 0;
};

DoneSteps read_life(const std::string& path, RunFigures& run) {
  RunJson record;
  const RunJson life = last_life(path, record);
  try {
    const auto before = life.at("first_step").get<index_t>();
    run.ranks = record.at("ranks").at(life.at("ranks").get<std::string>()).at("count");
    run.nodes = std::ssize(life.at("hosts"));
    run.shape = shape_of(life);
    run.sequences = life.at("sequences");
    run.tokens = static_cast<double>(run.sequences) * life.at("context").get<double>();
    run.emulated = flag_of(life, "emulated");
    run.shared_cores = flag_of(life, "shared_cores");
    read_common(path, record, life, run);
    read_end(life.at("end"), run);
    return {before, before + life.at("end").at("steps").get<index_t>()};
  } catch (const RunJson::exception& error) {
    damaged(path, fmt::format("lacks what a study needs ({})", error.what()));
  }
}

/// Objects of whole lines: one that a kill or a full disk has cut is passed over.
std::vector<RunJson> steps_of(const std::string& path, const DoneSteps& done,
                              std::string& missing_steps) {
  std::vector<RunJson> steps;
  MissingSteps missing(done.before);
  LogLines lines(path);
  while (const auto line = lines.next()) {
    const auto at = step_of_line(*line);
    if (!at || *at <= done.before) continue;
    const auto step = parse_object(*line);
    const index_t number = step ? count_of(*step, "step").value_or(0) : 0;
    if (number <= done.before) continue;
    missing.add(number);
    steps.push_back(*step);
  }
  missing.expect_up_to(done.last);
  missing_steps = missing.text();
  return steps;
}

}  // namespace

index_t warm_up_steps(index_t steps) { return std::max<index_t>(2, steps / 5); }

RunFigures read_run_figures(const std::string& folder) {
  RunFigures run;
  run.folder = folder;
  const DoneSteps done = read_life(folder + "/run.json", run);
  const std::string path = folder + "/log.jsonl";
  const std::vector<RunJson> steps = steps_of(path, done, run.missing_steps);
  const index_t skipped = warm_up_steps(std::ssize(steps));
  run.steps = std::ssize(steps) - skipped;
  if (run.steps < 1)
    throw_error(ExitCode::config, "{} has {}: the first {} are warm-up, and no other is left{}",
                path, counted(steps.size(), "step"), skipped,
                run.missing_steps.empty() ? "" : "; it lacks " + run.missing_steps);
  constexpr std::array kKeys{"seconds",     "predicted_seconds", "mfu",
                             "mfu_of_peak", "imbalance",         "comm_fraction"};
  StepNumbers numbers;
  for (auto step = steps.begin() + skipped; step != steps.end(); ++step)
    for (const char* key : kKeys) numbers.add(*step, key);
  run.seconds = numbers.median("seconds");
  run.predicted_seconds = numbers.median("predicted_seconds");
  run.mfu = numbers.median("mfu");
  run.mfu_of_peak = numbers.median("mfu_of_peak");
  run.imbalance = numbers.median("imbalance");
  run.comm_fraction = numbers.median("comm_fraction");
  if (!(run.seconds > 0)) damaged(path, "has no seconds of steps");
  return run;
}

std::map<std::string, std::string> telling_keys(const std::string& resolved) {
  // Tables that say where and how long, and in which the points of a study differ.
  const std::set<std::string> passed_over{"run", "mesh",     "batch",  "checkpoint", "eval",
                                          "log", "schedule", "hetero", "nodes",      "emulate"};
  const std::set<std::string> passed_over_keys{"debug.trace", "debug.check_finite",
                                               "debug.watchdog_seconds", "debug.io_seconds",
                                               "debug.lost_seconds"};
  std::map<std::string, std::string> keys;
  std::istringstream lines(resolved);
  std::string table;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("[")) {
      table = line.substr(0, line.find(']'));
      table.erase(0, table.find_first_not_of('['));
      continue;
    }
    const std::size_t equals = line.find(" = ");
    if (table.empty() || equals == std::string::npos || passed_over.contains(table)) continue;
    const std::size_t comment = line.find("  # ");
    // What is computed of the batch is another number where the batch grows with the ranks.
    const bool computed = comment != std::string::npos && line.substr(comment) == "  # computed";
    if (computed && table != "model") continue;
    const std::string key = table + "." + line.substr(0, equals);
    if (!passed_over_keys.contains(key)) keys[key] = line.substr(equals + 3, comment - equals - 3);
  }
  return keys;
}

std::string difference(const RunFigures& a, const RunFigures& b) {
  std::set<std::string> names;
  for (const RunFigures* run : {&a, &b})
    for (const auto& [name, value] : run->common) names.insert(name);
  const auto value_in = [](const RunFigures& run, const std::string& name) {
    const auto found = run.common.find(name);
    return found == run.common.end() ? std::string("not said") : found->second;
  };
  constexpr std::size_t kTold = 5;
  std::string told;
  std::size_t count = 0;
  for (const std::string& name : names) {
    if (value_in(a, name) == value_in(b, name) || ++count > kTold) continue;
    told += fmt::format("{}{} is {} in {} and {} in {}", told.empty() ? "" : "; ", name,
                        value_in(a, name), a.folder, value_in(b, name), b.folder);
  }
  if (count > kTold) told += fmt::format("; and {} more keys differ", count - kTold);
  return told;
}

}  // namespace t3d
