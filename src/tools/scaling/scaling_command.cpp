// transformer3d scaling INPUT --ranks ... runs a scaling study; scaling --collect DIR reads one.
#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <memory>
#include <utility>

#include "comm/mpi/mpi_world.hpp"
#include "core/error.hpp"
#include "core/utf8.hpp"
#include "device/host_limits.hpp"
#include "io/lock/run_lock.hpp"
#include "io/output.hpp"
#include "io/output_folder.hpp"
#include "io/posix_file.hpp"
#include "sched/stop_signal.hpp"
#include "tools/commands.hpp"
#include "tools/scaling/collect.hpp"
#include "tools/scaling/local_study.hpp"
#include "tools/scaling/slurm_study.hpp"

namespace t3d {
namespace {

// A rank has as many cores at every point, or the points with fewer ranks would have more of each.
index_t threads_of(const ScalingCommand& command) {
  if (command.threads > 0 || command.slurm) return command.threads;
  const index_t cores = cores_available();
  index_t ranks = 1;  // of the largest point that has a core for each
  for (const index_t one : command.ranks)
    if (one <= cores) ranks = std::max(ranks, one);
  return cores / ranks;
}

/// Of the study's folder: its runs are put aside and begun by one call at a time.
std::unique_ptr<RunLock> lock_study(const std::string& dir, const std::string& title) {
  bool told = false;
  const auto waiting = [&](const std::string& text) {
    if (wait_for_stop_signal(std::chrono::milliseconds{0}) != 0)
      throw_error(ExitCode::retry, "asked to stop by a signal while waiting: {}", text);
    if (!std::exchange(told, true)) fmt::print(stderr, "transformer3d: waiting: {}\n", text);
  };
  return std::make_unique<RunLock>(
      std::vector<std::string>{dir}, title, waiting,
      "two calls of scaling cannot work in one folder. Wait for it, stop it, or choose another "
      "folder with -o");
}

/// Runs get the name as the value of a key and as a word behind -d: so that neither takes it for
/// something else, it begins as a path where it does not begin as a name.
std::string study_folder(const std::string& name) {
  const bool lines = std::any_of(name.begin(), name.end(), is_control);
  if (lines || !is_utf8(name))
    throw_error(ExitCode::usage, "-o: the study cannot lie in \"{}\": the name {}",
                printable(name, 200), lines ? "has a control character" : "is not UTF-8");
  const bool plain = name.front() == '/' || name.front() == '.' || name.front() == '_' ||
                     std::isalpha(static_cast<unsigned char>(name.front())) != 0;
  return plain ? name : "./" + name;
}

int report(const std::string& dir, const StudyFigures& study) {
  write_output(write_study(dir, study));
  flush_output();
  return 0;
}

int start_study(ScalingCommand command, const std::vector<std::string>& overrides) {
  if (launched_by_mpi())
    throw_error(ExitCode::usage,
                "scaling starts the ranks itself: call it without mpirun or srun, or write a job "
                "with --slurm");
  (void)launcher_words(command.launcher, 1);
  std::sort(command.ranks.begin(), command.ranks.end());
  command.ranks.erase(std::unique(command.ranks.begin(), command.ranks.end()), command.ranks.end());
  if (!command.output.empty()) command.output = study_folder(command.output);
  StudyPlan plan = plan_study(command, overrides, threads_of(command));
  const std::string dir = command.output.empty() ? "scaling-" + plan.title : command.output;
  check_output_folder(dir);
  make_folder(dir);
  const std::unique_ptr<RunLock> lock = lock_study(dir, plan.title);
  plan = keep_study(dir, std::move(plan));
  if (command.slurm) {
    write_text_durably(dir + "/study.sbatch", slurm_study(dir, plan, command.ranks_per_node));
    const std::string study = std::filesystem::absolute(dir).lexically_normal().string();
    write_output(
        fmt::format("sbatch {0}/study.sbatch\nthen: transformer3d scaling --collect {0}\n"
                    "(both from any folder; the runs start in {1}, where their relative paths "
                    "begin)\n",
                    study, std::filesystem::current_path().string()));
    flush_output();
    return 0;
  }
  const StudyEnd end = run_study(dir, plan, command.launcher, *lock);
  const int status = report(dir, collect_study(dir));
  if (end.stopped)
    throw_error(ExitCode::retry, "stopped by a signal; the same command runs what is missing");
  if (end.failed > 0)
    throw_error(ExitCode::unavailable,
                "{} of {} points have runs that failed; their logs are named above", end.failed,
                plan.points.size());
  return status;
}

}  // namespace

int run_scaling(Communicator& world, const CommandLine& command) {
  T3D_CHECK(world.size() == 1, "scaling is one process");
  if (command.scaling.collect.empty()) return start_study(command.scaling, command.overrides);
  return report(command.scaling.collect, collect_study(command.scaling.collect));
}

}  // namespace t3d
