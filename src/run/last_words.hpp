// What is left to do when another rank of the job is lost: the rank that notices it says so, once,
// on the screen, in run.log and in exit.json; then every rank ends with "peer lost", and the one
// that has spoken puts the job back into Slurm's queue. Nothing here talks to MPI or waits for
// another rank.
#pragma once
#include <atomic>
#include <mutex>
#include <string>

#include "comm/peers/peer_watch.hpp"
#include "core/types.hpp"
#include "io/lives/exit_record.hpp"

namespace t3d {

class LastWords {
 public:
  explicit LastWords(int rank) : rank_(rank) {}

  /// The run folder is this life's from now on.
  void set_folder(const std::string& dir, const Epoch& epoch);
  /// The job shall be started again.
  void set_requeue(bool requeue);
  /// Steps done, and the newest checkpoint; -1 = none. First of all, those of the start.
  void set_progress(index_t step, index_t checkpoint);

  /// From any thread.
  void say(const PeerLoss& loss);
  [[noreturn]] void end();
  /// Another rank has told why it ends: exit.json is its own.
  void hear(const PeerLoss& loss);

 private:
  void end_soon();
  void write_record();
  [[nodiscard]] bool has_record() const;
  void put_back();

  const int rank_;
  std::mutex mutex_;  // of the five below
  std::string dir_;
  Epoch epoch_;
  bool requeue_ = false, has_spoken_ = false;
  ExitRecord record_;
  std::atomic<bool> has_started_{false}, asks_slurm_{false};
  std::atomic<index_t> step_{0}, checkpoint_{-1}, first_checkpoint_{-1};
};

}  // namespace t3d
