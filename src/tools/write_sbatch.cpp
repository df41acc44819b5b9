// --write-sbatch [RANKS]: a job script for an input, on the screen.
#include <filesystem>

#include "io/output.hpp"
#include "run/setup.hpp"
#include "sched/sbatch.hpp"
#include "tools/commands.hpp"

namespace t3d {
int run_write_sbatch(Communicator& world, const CommandLine& command) {
  Origins origins;
  AcceptedInput accepted;  // also of a life that goes on with the kept input
  const Config config =
      load_input(world, command.input, command.overrides, static_cast<int>(command.sbatch_ranks),
                 origins, DataFiles::not_read, &accepted);
  all_or_none(world, [&] {
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
