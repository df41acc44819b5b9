// What a process beside the ranks does for a checkpoint, and what comes of it: one node file, or
// the publication of all. Texts for another process of the same program. Internal to `io`.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "io/checkpoint/checkpoint.hpp"
#include "io/lock/lease.hpp"

namespace t3d {

/// To write a node file from the snapshot (io/writer/snapshot.hpp).
struct FileTask {
  std::vector<std::string> descriptions;  // of the group's ranks, as SavePlan takes them
  std::string folder, name, run_id;
  index_t step = 0;
  bool verify = true;
  std::string digest_without;  // tensors whose names start so are not part of the digest
};

/// To write master and manifest, and to give the folder its name.
struct PublishTask {
  CheckpointOptions options;  // its lock is `lease`
  std::optional<Lease> lease;
  CheckpointState state;
  std::string fragment;  // of all files (io/checkpoint/fragment.hpp)
  std::string partial, owner;
};

struct TaskResult {
  std::optional<Error> fault;
  std::string text;        // fragment of the manifest; path of what was published
  std::string not_finite;  // tensor with an element that is not
  std::uint64_t digest = 0;
  double seconds = 0, cpu_seconds = 0;
};

/// Of a process that has said `answer` and has ended `how`; "" = by itself and in order. Where it
/// did not, there is a fault, though all may have been said: then the rest is as it was said.
[[nodiscard]] TaskResult result_of(const std::string& answer, const std::string& how);

[[nodiscard]] std::string text_of(const FileTask& task);
[[nodiscard]] std::string text_of(const PublishTask& task);
/// Carries it out. `snapshot`: its open file, for a FileTask.
[[nodiscard]] TaskResult run_task(const std::string& text, int snapshot);

[[nodiscard]] std::string text_of(const TaskResult& result);
/// One of the results of two processes that wrote files: sums, and the longest.
[[nodiscard]] std::string join_results(const std::string& lower, const std::string& higher);
/// Error(io) where the text is cut short.
[[nodiscard]] TaskResult parse_result(const std::string& text);

}  // namespace t3d
