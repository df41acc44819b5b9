#include "tools/calibrate/cluster_update.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>
#include <utility>

#include "core/counted.hpp"
#include "core/error.hpp"
#include "core/phase_clock.hpp"
#include "forecast/cluster/cluster_file.hpp"
#include "forecast/cluster/run_factors.hpp"
#include "io/lock/lock_file.hpp"
#include "io/output.hpp"
#include "io/posix_file.hpp"
#include "run/step_predictor.hpp"
#include "tools/step_factors.hpp"

namespace t3d {
namespace {

constexpr std::chrono::milliseconds kLook{50};
constexpr double kSilent = 1, kPatience = kLockExpiresSeconds + 10;  // seconds

/// It is held for milliseconds; that of a process that has ended is taken over.
void take(LockFile& lock) {
  const double start = PhaseClock::now();
  bool told = false;
  while (const auto holder = lock.try_take()) {
    const double waited = PhaseClock::now() - start;
    const std::string held = fmt::format("{} is held by {}", lock.path(), describe(*holder));
    if (waited > kPatience) throw_error(ExitCode::unavailable, "{}", held);
    if (waited > kSilent && !std::exchange(told, true))
      std::fputs(fmt::format("transformer3d: calibrate: waiting: {}; {:.0f} s at most\n", held,
                             kPatience - waited)
                     .c_str(),
                 stderr);
    std::this_thread::sleep_for(kLook);
  }
}

/// What both files say now.
Cluster known_now(const CalibrateCommand& wish, const std::string& before,
                  std::vector<std::string>& notes) {
  Cluster known;
  std::error_code none;
  if (!wish.add.empty()) {
    const std::string text = read_text_file(wish.add);
    if (text != before)
      notes.push_back(fmt::format("{} has changed in the meantime: that is kept", wish.add));
    known = parse_cluster(text, wish.add);
  }
  if (file_size(wish.output) > 0 && !std::filesystem::equivalent(wish.output, wish.add, none)) {
    notes.push_back(fmt::format("{} was written in the meantime: that is kept", wish.output));
    known = joined(known, load_cluster(wish.output));
  }
  return known;
}

void note_lost_factors(const Cluster& before, const Cluster& now, std::vector<std::string>& notes) {
  for (const NodeClass& one : before.classes)
    if (const NodeClass* own = now.find_class(one.name);
        one.factors.steps > 0 && own != nullptr && own->factors.steps == 0)
      notes.push_back(fmt::format(
          "{}: the factors of its runs belong to the tables of before and are left out", one.name));
}

/// Under a name that nothing has.
std::string save_beside(const std::string& output, const std::string& text) {
  std::string path = output + ".measured";
  for (int number = 2; path_exists(path); ++number)
    path = fmt::format("{}.measured-{}", output, number);
  write_text_durably(path, text);
  return path;
}

/// Minutes of a job are not lost with the disk. Says where the text is.
std::string rescued(const std::string& output, const std::string& text) {
  try {
    return "what was measured is in " + save_beside(output, text);
  } catch (const Error&) {  // mostly for the same reason as the file itself
  }
  try {
    write_output(text);
    flush_output();
    return "what was measured stands on standard output, as the file would have it: copy it from "
           "there, from has_end to [end]";
  } catch (const Error&) {
    return "what was measured:\n" + text;
  }
}

}  // namespace

void update_cluster_file(const CalibrateCommand& wish, const std::string& before,
                         const Cluster& more, const std::function<Cluster(const Cluster&)>& change,
                         std::vector<std::string>& notes) {
  const auto joined_text = [&] {
    const Cluster known = known_now(wish, before, notes);
    const Cluster all = change(known);
    note_lost_factors(known, all, notes);
    return cluster_text(all);
  };
  std::string text;
  try {
    const std::string file = replaceable_file(wish.output), folder = folder_of(file);
    make_folder(folder);
    const std::string name = std::filesystem::path(file).filename().string();
    LockFile lock(folder, this_process("calibrate"), name + ".lock");
    take(lock);
    text = joined_text();
    write_text_durably(wish.output, text);
  } catch (const Error& error) {
    if (!wish.measures()) throw;
    try {
      if (text.empty()) text = joined_text();
    } catch (const Error&) {  // the file cannot be read any more
      text = cluster_text(more);
    }
    throw_error(error.code(), "{}\n{}", error.what(), rescued(wish.output, text));
  }
}

Cluster with_factors_of_run(Cluster known, const std::string& folder, const std::string& file) {
  const std::string path = folder + "/" + kStepFactorsFile;
  if (!path_exists(path))
    throw_error(ExitCode::no_input,
                "there is no {}: a run on nodes of one class writes it in its end, where "
                "hetero.cluster names the cluster's file",
                path);
  const StepFactors run = parse_step_factors(read_record_file(path), path);
  const auto own = std::find_if(known.classes.begin(), known.classes.end(),
                                [&](const auto& one) { return one.name == run.node_class; });
  if (own == known.classes.end())
    throw_error(ExitCode::config, "{}: {} has no class \"{}\"", path, file, run.node_class);
  if (own->calibration.time != run.calibrated_time)
    throw_error(ExitCode::config,
                "{} is about tables of {}, those of {} in {} are of {}: it says nothing about them",
                path, run.calibrated_time.empty() ? "no time" : run.calibrated_time, own->name,
                file, own->calibration.time.empty() ? "no time" : own->calibration.time);
  for (const std::string& id : run.factors.runs)
    if (std::find(own->factors.runs.begin(), own->factors.runs.end(), id) !=
        own->factors.runs.end())
      throw_error(ExitCode::config, "run {} is in {} already", id, file);
  own->factors = merged_factors(own->factors, run.factors);
  return known;
}

std::string factors_text(const RunFactors& factors) {
  std::string text;
  for (const auto& [name, factor] : kRunFactors) {
    const RunFactor& one = factors.*factor;
    if (one.error > 0 && one.error < RunFactor::kUnknown)
      text += fmt::format("{} {:.3f} +- {:.3f}{}, ", name, one.value, one.error,
                          is_used(one) ? "" : " (too uncertain: not used)");
  }
  return text +
         fmt::format("of {} ({})", counted(factors.steps, "step"), fmt::join(factors.runs, ", "));
}

}  // namespace t3d
