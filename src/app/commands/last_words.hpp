// What is left to do when another rank of the job is lost: the rank that notices it says so, once,
// on the screen, in run.log and in exit.json; then every rank ends with "peer lost". Nothing here
// talks to MPI or waits for another rank.
#pragma once
#include <atomic>
#include <mutex>
#include <string>

#include "comm/peers/peer_watch.hpp"
#include "core/types.hpp"

namespace t3d {

class LastWords {
 public:
  explicit LastWords(int rank) : rank_(rank) {}

  /// The run folder is this job's from now on.
  void set_folder(const std::string& dir);
  /// Steps done, and the newest checkpoint; -1 = none.
  void set_progress(index_t step, index_t checkpoint);

  /// From any thread.
  void say(const PeerLoss& loss);
  [[noreturn]] static void end();

 private:
  const int rank_;
  std::mutex mutex_;  // of dir_
  std::string dir_;
  std::atomic<index_t> step_{0}, checkpoint_{-1};
};

}  // namespace t3d
