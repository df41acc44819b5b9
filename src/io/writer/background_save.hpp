// Checkpoints that are written beside the training: the step waits for a copy of the state into
// memory that the ranks of a node share; a process per node file writes it from there; when all
// have, another one publishes (docs/decisions/014-asynchronous-checkpoints.md).
#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "core/error.hpp"
#include "io/checkpoint/checkpoint.hpp"

namespace t3d {

/// Bytes of state that are worth it: to start a process takes as long as to write so much.
inline constexpr index_t kWorthProcess = 1 << 20;

/// What came of one checkpoint.
struct SaveOutcome {
  index_t step = 0;
  std::string path;  // of what was published; "" where there is a fault
  std::optional<Error> fault;
  std::string not_finite;         // tensor with such an element: nothing was published
  std::string digest;             // io/checkpoint/state_digest.hpp
  index_t keep = 0;               // of checkpoints, as it was applied
  double seconds = 0;             // from begin() on, on this rank
  double stall_seconds = 0;       // of them, in begin()
  double work_seconds = 0;        // without what nobody worked for it
  double writer_cpu_seconds = 0;  // of all processes
};

class BackgroundSave {
 public:
  /// Collective over `world`, which must outlive it. `digest_without`: tensors whose names start so
  /// are not part of the digest. A process that takes longer than `limit_seconds` is ended (0 = no
  /// limit). The calling thread must outlive it.
  BackgroundSave(Communicator& world, const CheckpointOptions& options, std::string digest_without,
                 double limit_seconds);
  ~BackgroundSave();
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;

  /// Collective. Takes the memory for snapshots of `parts`, unless there is enough of it. Error
  /// AgreedError(unavailable) where it cannot be had or shared: such state is saved by
  /// save_checkpoint(). Error(io) as there, where the boxes do not cover their tensors.
  void prepare(const std::vector<TensorPart>& parts);
  /// Collective; nothing may be pending, and `parts` are as they were prepared. Copies them: they
  /// may change afterwards. Errors as save_checkpoint().
  void begin(const CheckpointState& state, const std::vector<TensorPart>& parts);

  /// The step of a checkpoint that has begun and not ended; -1 without one.
  [[nodiscard]] index_t pending() const;
  /// A process of this rank is at work for it.
  [[nodiscard]] bool busy();
  /// Collective, while one is pending, when no rank is busy: what comes next. The outcome when it
  /// has ended. `keep`: as CheckpointOptions, at the publication.
  std::optional<SaveOutcome> advance(index_t keep);
  /// Collective, while one is pending: waits for its end.
  SaveOutcome settle(index_t keep);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace t3d
