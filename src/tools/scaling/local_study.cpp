#include "tools/scaling/local_study.hpp"

#include <filesystem>
#include <set>
#include <sstream>

#include "core/commas.hpp"
#include "core/error.hpp"
#include "io/lock/lock_look.hpp"
#include "io/lock/silence.hpp"
#include "io/output.hpp"
#include "io/posix_file.hpp"
#include "record/study/study.hpp"
#include "tools/scaling/launch.hpp"

namespace t3d {
namespace {

void say(const std::string& text) {
  write_output(text + "\n");
  flush_output();
}

/// What a run that was cut short has left is of no use for times, and is kept all the same.
void put_aside(const std::string& folder) {
  if (!path_exists(folder)) return;
  std::string name;
  index_t number = 1;
  do name = fmt::format("{}.unfinished-{}", folder, number++);
  while (path_exists(name));
  rename_durably(folder, name);
}

class LocalStudy {
 public:
  LocalStudy(const std::string& dir, const StudyPlan& plan, const std::string& launcher,
             const RunLock& lock)
      : dir_(dir), plan_(plan), launcher_(launcher), lock_(lock), seconds_(plan.points.size()) {}

  StudyEnd run() {
    for (index_t repeat = 1; repeat <= plan_.repeats; ++repeat)
      for (std::size_t at = 0; at < plan_.points.size() && !end_.stopped; ++at) visit(at, repeat);
    end_.failed = std::ssize(failed_);
    return end_;
  }

 private:
  void visit(std::size_t at, index_t repeat) {
    const PlannedPoint& point = plan_.points[at];
    if (is_finished(dir_, point, repeat)) {
      const std::string folder = repeat_folder(dir_, point, repeat);
      seconds_[at].push_back(read_run_figures(folder).seconds);
      return measure_operators(point, folder);
    }
    if (failed_.contains(at)) return;
    if (settled(seconds_[at], plan_.spread)) {
      if (told_.insert(at).second)
        say(fmt::format("{}: {} runs are within {:.1f} %; no more are needed", point.name,
                        seconds_[at].size(), 100 * spread_of(seconds_[at]).relative()));
      return;
    }
    start(at, repeat);
  }

  void start(std::size_t at, index_t repeat) {
    const PlannedPoint& point = plan_.points[at];
    const std::string folder = repeat_folder(dir_, point, repeat);
    const std::string what = fmt::format("repeat {} of {}, {}", repeat, plan_.repeats, point.name);
    lock_.check();
    // A silent owner is waited for until its lock expires.
    if (const LockLook look = look_at_lock(folder, kLockExpiresSeconds + 2);
        look.state == LockLook::State::alive || look.state == LockLook::State::silent) {
      failed_.insert(at);
      return say(fmt::format("{}: left alone, {} is doing it", what, look.owner));
    }
    put_aside(folder);
    const LaunchEnd end =
        start_ranks(point, {input_file(dir_, point), "-q", "-d", folder}, folder + ".log");
    if (end.stopped) {
      end_.stopped = true;
      return say(what + ": stopped");
    }
    if (!is_finished(dir_, point, repeat)) {
      failed_.insert(at);
      return say(fmt::format("{}: no figures, the run ended with {}; see {}.log", what, end.status,
                             folder));
    }
    std::error_code none;
    std::filesystem::remove_all(folder + "/ckpt", none);
    seconds_[at].push_back(read_run_figures(folder).seconds);
    say(fmt::format("{}: {} ms a step", what, readable(1e3 * seconds_[at].back(), 4)));
    measure_operators(point, folder);
  }

  /// Tried once, with the plan of that run. A study without it has its times all the same.
  void measure_operators(const PlannedPoint& point, const std::string& run) {
    const std::string file = operators_file(dir_, point);
    if (!plan_.roofline || path_exists(file) || !tried_.insert(file).second) return;
    const std::string folder = dir_ + "/" + point.name, log = folder + "/operators.log";
    const LaunchEnd end = start_ranks(point, operators_words(folder, run), log);
    end_.stopped = end.stopped;
    if (!path_exists(file))
      say(fmt::format("{}: its operators were not measured ({}); see {}", point.name,
                      end.stopped ? "stopped" : fmt::format("status {}", end.status), log));
  }

  /// This program with these words.
  LaunchEnd start_ranks(const PlannedPoint& point, const std::vector<std::string>& own,
                        const std::string& log) const {
    std::vector<std::string> words = launcher_words(launcher_, point.ranks);
    words.push_back(std::filesystem::read_symlink("/proc/self/exe").string());
    words.insert(words.end(), own.begin(), own.end());
    // Ranks may be more than cores: the study says so, the launcher need not refuse.
    return launch(words, {"OMPI_MCA_rmaps_base_oversubscribe=1"}, log);
  }

  const std::string& dir_;
  const StudyPlan& plan_;
  const std::string& launcher_;
  const RunLock& lock_;
  std::vector<std::vector<double>> seconds_;  // of the finished runs, by point
  std::set<std::size_t> failed_, told_;
  std::set<std::string> tried_;  // files of operators
  StudyEnd end_;
};

}  // namespace

std::vector<std::string> launcher_words(const std::string& launcher, index_t ranks) {
  const std::string place = "{ranks}";
  std::istringstream text(launcher);
  std::vector<std::string> words;
  bool found = false;
  for (std::string word; text >> word;) {
    if (const std::size_t at = word.find(place); at != std::string::npos) {
      word.replace(at, place.size(), std::to_string(ranks));
      found = true;
    }
    words.push_back(word);
  }
  if (!found)
    throw_error(ExitCode::usage,
                "--launcher \"{}\" does not say where the number of ranks goes: {}", launcher,
                place);
  return words;
}

StudyEnd run_study(const std::string& dir, const StudyPlan& plan, const std::string& launcher,
                   const RunLock& lock) {
  return LocalStudy(dir, plan, launcher, lock).run();
}

}  // namespace t3d
