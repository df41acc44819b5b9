#include <unistd.h>

#include <optional>

#include "core/error.hpp"
#include "io/output.hpp"
#include "run/run_status.hpp"
#include "run/setup.hpp"
#include "tools/commands.hpp"

namespace t3d {

int run_status(Communicator& world, const CommandLine& command) {
  all_or_none(world, [&] {
    if (world.rank() != 0) return;
    const bool on_screen = ::isatty(STDOUT_FILENO) == 1;
    std::optional<Error> fault;  // the first; the other folders are looked at all the same
    for (const std::string& dir : command.status.dirs) {
      std::optional<RunStatus> status;
      try {
        status = look_at_run(dir);
        add_missing(*status, missing_steps(dir + "/log.jsonl"));
      } catch (const Error& error) {
        if (!fault) fault = error;
      }
      if (status)
        write_output(command.status.json ? status_json(*status) : status_text(*status, on_screen));
    }
    flush_output();
    if (fault) throw *fault;
  });
  return 0;
}

}  // namespace t3d
