// transformer3d: the program. Starts MPI, reads the command line, runs one command, and turns what
// went wrong into one message and an exit code (core/error.hpp).
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <optional>
#include <thread>

#include "app/cli.hpp"
#include "app/launch_guard.hpp"
#include "app/spin_limit.hpp"
#include "comm/mpi/mpi_world.hpp"
#include "io/output.hpp"
#include "io/writer/writer_main.hpp"
#include "run/train_job.hpp"
#include "sched/signal_check.hpp"
#include "sched/stop_signal.hpp"
#include "tools/commands.hpp"
#include "tools/step_prediction.hpp"

namespace t3d {
namespace {

std::unique_ptr<StepPredictor> predictor_of_file(const std::string& file,
                                                 const std::vector<std::string>& nodes,
                                                 const std::vector<std::string>& devices) {
  return std::make_unique<StepPrediction>(file, nodes, devices);
}

int run_command(Communicator& world, const CommandLine& command, std::function<void()>& last_act) {
  switch (command.action) {
    case CommandLine::Action::train:
      return run_training(world, command, predictor_of_file, last_act);
    case CommandLine::Action::sbatch: return run_write_sbatch(world, command);
    case CommandLine::Action::dry_run: return run_dry(world, command);
    case CommandLine::Action::eval: return run_evaluation(world, command);
    case CommandLine::Action::generate: return run_generation(world, command);
    case CommandLine::Action::tokenize: return run_tokenize(world, command);
    case CommandLine::Action::probe: return run_probe(world, command);
    case CommandLine::Action::calibrate: return run_calibrate(world, command);
    case CommandLine::Action::inspect: return run_inspect(world, command);
    case CommandLine::Action::exports: return run_export(world, command);
    case CommandLine::Action::imports: return run_import(world, command);
    case CommandLine::Action::plan: return run_plan(world, command);
    case CommandLine::Action::simulate: return run_simulation(world, command);
    case CommandLine::Action::scaling: return run_scaling(world, command);
    case CommandLine::Action::status: return run_status(world, command);
    case CommandLine::Action::report: return run_report(world, command);
    case CommandLine::Action::watch: return run_watch(world, command);
    case CommandLine::Action::print:
      if (world.rank() == 0) write_output(command.text);
      return 0;
  }
  return static_cast<int>(ExitCode::internal);
}

/// Not fmt::print: that throws when the screen is gone.
void say(const std::string& text) {
  std::fflush(stdout);
  std::fputs(fmt::format("transformer3d: {}\n", text).c_str(), stderr);
}

// An error that only this rank knows of: the others would wait for it for ever.
int end_alone(const Communicator& world, const Error& error) {
  say(world.size() > 1 ? fmt::format("rank {}: {}", world.rank(), error.what()) : error.what());
  if (world.size() > 1) abort_world(static_cast<int>(error.code()));
  return static_cast<int>(error.code());
}

/// A rank that dies while all of them end leaves the others in MPI_Finalize.
void end_within_a_minute(int status, const std::function<void()>& last_act) {
  std::thread([status, last_act] {
    std::this_thread::sleep_for(std::chrono::minutes(1));
    if (last_act) last_act();
    _exit(status);
  }).detach();
}

/// `last_act`: to be done when MPI has ended.
int run(int argc, char** argv, std::function<void()>& last_act) {
  block_stop_signals();
  const bool meets = !needs_no_ranks(argc, argv) && launched_by_mpi();
  std::optional<LaunchGuard> guard(meets);
  std::optional<MpiSession> session;
  if (meets) session.emplace(argc, argv);
  const std::unique_ptr<Communicator> world = make_mpi_world();
  guard.reset();
  // What all ranks agree on, one of them says and returns: a launcher that ends a job at the first
  // status that is not 0 (srun --kill-on-bad-exit) names one rank, and ends no other in
  // MPI_Finalize.
  const auto agreed = [&](int status) {
    const int own = world->rank() == 0 ? status : 0;
    if (session) end_within_a_minute(own, last_act);
    return own;
  };
  try {
    CommandLine command;
    try {
      command = parse_command_line(argc, argv);
    } catch (const Error& error) {  // the same words on every rank
      throw AgreedError(error.code(), error.what());
    }
    const bool training = command.action == CommandLine::Action::train;
    if (training) warn_of_signal_handlers(*world);
    if (command.action == CommandLine::Action::probe ||
        command.action == CommandLine::Action::scaling)
      restore_pipe_signal();
    else if (!training)
      unblock_stop_signals();
    const int status = run_command(*world, command, last_act);
    // What a command printed is its result. A full disk shows only when the last of it is written.
    // (The screen of a training is not: its files hold the same.)
    if (!training) flush_output();
    return agreed(status);
  } catch (const AgreedError& error) {
    if (world->rank() == 0) say(error.what());
    return agreed(static_cast<int>(error.code()));
  } catch (const std::exception& error) {
    return end_alone(*world, as_error(error));
  }
}

}  // namespace

/// A file that is opened later must not become standard output or error, where others write.
void open_missing_files() {
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(file, F_GETFD) < 0 && errno == EBADF) static_cast<void>(open("/dev/null", O_RDWR));
}

}  // namespace t3d

int main(int argc, char** argv) {
  t3d::open_missing_files();
  if (const std::optional<int> status = t3d::run_checkpoint_writer(argc, argv)) return *status;
  t3d::limit_spinning(argv);
  try {
    std::function<void()> last_act;
    const int status = t3d::run(argc, argv, last_act);
    if (last_act) last_act();
    return status;
  } catch (const std::exception& error) {
    const t3d::Error cause = t3d::as_error(error);
    t3d::say(cause.what());
    return static_cast<int>(cause.code());
  }
}
