// The job script of one run: jobs/preemptible.sbatch with program, input and number of ranks filled
// in. What belongs to a site (partition, time, account) is left to sbatch's options and defaults.
#pragma once
#include <string>
#include <vector>

#include "core/types.hpp"

namespace t3d {

/// Nodes that are alike: one component of a job.
struct SbatchPart {
  index_t nodes = 1, ranks_per_node = 1;
  index_t cores_per_rank = 0, gpus_per_rank = 0;  // 0 = Slurm's default
  index_t memory_bytes = 0;                       // of a node; 0 = the site's default
  std::string partition;                          // empty = the site's
  std::string constraint;                         // an expression of features; empty = none
  std::string exclude;                            // a list of nodes; empty = none
};

struct SbatchWish {
  std::string name;                  // of the job
  std::string program;               // path of this binary
  std::string input;                 // path of the input file
  std::string run_dir;               // run.dir of the input
  std::string checkpoint_dir;        // checkpoint.dir
  index_t ranks = 0;                 // 0 = one on each node of the job
  std::vector<std::string> options;  // of the program, further ones
  std::string next;                  // a script that submits what follows a pause; empty = nobody
  /// Nodes to ask for; several = a heterogeneous job, whose ranks are one world in this order.
  /// Empty = left to sbatch.
  std::vector<SbatchPart> parts;
  std::string folder;  // where relative paths begin; empty = where sbatch is called
};

/// Throws Error(config) where a path cannot stand in a script (a line break).
[[nodiscard]] std::string sbatch_text(const SbatchWish& wish);

/// A line of a shell script that goes there, or ends the script with 66.
[[nodiscard]] std::string enter_text(const std::string& folder);

/// The word as bash reads it back, quoted where needed.
[[nodiscard]] std::string shell_word(const std::string& word);

}  // namespace t3d
