// The words of a command line that are a run's: what is trained, and what it says on the screen.
#pragma once
#include <string>
#include <vector>

namespace t3d {

struct RunWords {
  std::string input;                   // file
  std::vector<std::string> overrides;  // "table.key=value"; -d and -r come last, as such
  bool quiet = false;                  // only warnings on the screen
  bool verbose = false;                // with what the planner compared
};

}  // namespace t3d
