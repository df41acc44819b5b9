// The job script of one run: jobs/preemptible.sbatch with program, input and number of ranks filled
// in. What belongs to a site (partition, time, account) is left to sbatch's options and defaults.
#pragma once
#include <string>
#include <vector>

#include "core/types.hpp"

namespace t3d {

struct SbatchWish {
  std::string name;                  // of the job
  std::string program;               // path of this binary
  std::string input;                 // path of the input file
  std::string run_dir;               // run.dir of the input
  index_t ranks = 0;                 // 0 = one on each node of the job
  std::vector<std::string> options;  // of the program, further ones
};

/// Throws Error(config) where a path cannot stand in a script (a line break).
[[nodiscard]] std::string sbatch_text(const SbatchWish& wish);

/// The word as bash reads it back, quoted where needed.
[[nodiscard]] std::string shell_word(const std::string& word);

}  // namespace t3d
