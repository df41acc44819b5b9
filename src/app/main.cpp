// transformer3d: the program. Starts MPI, reads the command line, runs one command, and turns what
// went wrong into one message and an exit code (core/error.hpp).
#include <cstdio>
#include <exception>

#include "app/cli.hpp"
#include "app/commands/commands.hpp"
#include "app/signal_check.hpp"
#include "app/stop_signal.hpp"
#include "comm/mpi/mpi_world.hpp"

namespace t3d {
namespace {

int run_command(Communicator& world, const CommandLine& command) {
  switch (command.action) {
    case CommandLine::Action::train: return run_training(world, command);
    case CommandLine::Action::dry_run: return run_dry(world, command);
    case CommandLine::Action::eval: return run_evaluation(world, command);
    case CommandLine::Action::generate: return run_generation(world, command);
    case CommandLine::Action::tokenize: return run_tokenize(world, command);
    case CommandLine::Action::inspect: return run_inspect(world, command);
    case CommandLine::Action::print:
      if (world.rank() == 0) std::fputs(command.text.c_str(), stdout);
      return 0;
  }
  return static_cast<int>(ExitCode::internal);
}

void say(const std::string& text) {
  std::fflush(stdout);
  fmt::print(stderr, "transformer3d: {}\n", text);
}

// An error that only this rank knows of: the others would wait for it for ever.
int end_alone(const Communicator& world, const std::string& text, ExitCode code) {
  say(world.size() > 1 ? fmt::format("rank {}: {}", world.rank(), text) : text);
  if (world.size() > 1) abort_world(static_cast<int>(code));
  return static_cast<int>(code);
}

int run(int argc, char** argv) {
  block_stop_signals();
  const MpiSession session(argc, argv);
  const std::unique_ptr<Communicator> world = make_mpi_world();
  try {
    CommandLine command;
    try {
      command = parse_command_line(argc, argv);
    } catch (const Error& error) {  // the same words on every rank
      throw AgreedError(error.code(), error.what());
    }
    if (command.action != CommandLine::Action::train) unblock_stop_signals();
    if (command.action == CommandLine::Action::train) warn_of_signal_handlers(*world);
    return run_command(*world, command);
  } catch (const AgreedError& error) {
    if (world->rank() == 0) say(error.what());
    return static_cast<int>(error.code());
  } catch (const Error& error) {
    return end_alone(*world, error.what(), error.code());
  } catch (const std::exception& error) {
    return end_alone(*world, fmt::format("internal error: {}", error.what()), ExitCode::internal);
  }
}

}  // namespace
}  // namespace t3d

int main(int argc, char** argv) {
  try {
    return t3d::run(argc, argv);
  } catch (const t3d::Error& error) {
    t3d::say(error.what());
    return static_cast<int>(error.code());
  }
}
