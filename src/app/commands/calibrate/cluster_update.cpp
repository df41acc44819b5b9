#include "app/commands/calibrate/cluster_update.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "app/cluster/cluster_file.hpp"
#include "app/commands/step_factors.hpp"
#include "core/counted.hpp"
#include "core/error.hpp"
#include "hetero/cluster/run_factors.hpp"
#include "io/lock/lock_file.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

constexpr std::chrono::milliseconds kLook{50};

/// It is held for milliseconds; that of a process that has ended is taken over.
void take(LockFile& lock) {
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(kLockExpiresSeconds + 10);
  while (const auto holder = lock.try_take()) {
    if (std::chrono::steady_clock::now() > end)
      throw_error(ExitCode::unavailable, "{} is held by {}", lock.path(),
                  holder->owner ? describe(*holder->owner) : "an owner that cannot be read");
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

/// Under a name that nothing has.
std::string save_beside(const std::string& output, const Cluster& more) {
  std::string path = output + ".measured";
  for (int number = 2; path_exists(path); ++number)
    path = fmt::format("{}.measured-{}", output, number);
  write_text_durably(path, cluster_text(more));
  return path;
}

}  // namespace

void update_cluster_file(const CalibrateCommand& wish, const std::string& before,
                         const Cluster& more, const std::function<Cluster(const Cluster&)>& change,
                         std::vector<std::string>& notes) {
  const std::filesystem::path file(replaceable_file(wish.output));
  const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
  LockFile lock(folder, this_process("calibrate"), file.filename().string() + ".lock");
  take(lock);
  Cluster known;
  try {
    known = known_now(wish, before, notes);
  } catch (const Error& error) {
    if (more.classes.empty()) throw;
    throw_error(error.code(), "{}\nwhat was measured is in {}", error.what(),
                save_beside(wish.output, more));
  }
  const Cluster all = change(known);
  for (const NodeClass& one : known.classes)
    if (const NodeClass* now = all.find_class(one.name);
        one.factors.steps > 0 && now != nullptr && now->factors.steps == 0)
      notes.push_back(fmt::format(
          "{}: the factors of its runs belong to the tables of before and are left out", one.name));
  write_text_durably(wish.output, cluster_text(all));
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
