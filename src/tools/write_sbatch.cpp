// --write-sbatch [RANKS]: a job script for an input, on the screen.
#include <filesystem>

#include "io/output.hpp"
#include "run/kept_input.hpp"
#include "run/setup.hpp"
#include "sched/sbatch.hpp"
#include "tools/commands.hpp"

namespace t3d {
namespace {

// A job script asks for the folders of its run, also in a life that goes on with the kept input.
Config read_config(const CommandLine& command, Origins& origins) {
  const std::string text = read_input(command.input);
  try {
    return parse_config(text, command.input, command.overrides, &origins);
  } catch (const ConfigErrors&) {
    const auto kept = kept_input(command.input, text, command.overrides);
    if (!kept) throw;
    return parse_config(*kept, command.input, command.overrides, &origins);
  }
}

}  // namespace

int run_write_sbatch(Communicator& world, const CommandLine& command) {
  all_or_none(world, [&] {
    Origins origins;
    Config config = read_config(command, origins);
    if (command.sbatch_ranks > 0)
      check_against_ranks(config, static_cast<int>(command.sbatch_ranks), origins);
    if (world.rank() != 0) return;
    SbatchWish wish;
    wish.name = config.run.name;
    wish.program = std::filesystem::read_symlink("/proc/self/exe").string();
    wish.input = std::filesystem::absolute(command.input).string();
    wish.run_dir = config.run.dir;
    wish.checkpoint_dir = config.checkpoint.dir;
    wish.folder = std::filesystem::current_path().string();
    wish.ranks = command.sbatch_ranks;
    for (const std::string& word : command.overrides)
      wish.options.insert(wish.options.end(), {"--set", word});
    write_output(sbatch_text(wish));
  });
  return 0;
}

}  // namespace t3d
