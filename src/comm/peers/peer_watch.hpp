// PeerWatch: notices within seconds that another rank of the job is gone, whatever the launcher
// does.
//
// The ranks form a ring of TCP connections, each with the rank before it and the rank after it. The
// system closes the connection of a process that dies, whichever way; of a host that does not
// answer any more, the heartbeats remain unacknowledged. A process that is only stopped (SIGSTOP,
// scontrol suspend) still acknowledges, as its system does it for it: no alarm. Whoever notices a
// loss tells the others along the ring and along a binary tree over the ranks beside it, so that
// many thousands hear of it after some ten hops; only neighbours in the ring watch each other. A
// launcher that ends the job by itself has a second to do so. The ring also carries what a rank is
// busy with for longer (comm/busy.hpp).
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.hpp"

namespace t3d {

/// The neighbours of a rank in the tree that are none in the ring: rank 0 is the root, those below
/// `r` are 2r+1 and 2r+2.
struct TreeLinks {
  int up = -1;            // it connects to this one; -1: none
  std::vector<int> down;  // these connect to it
};
[[nodiscard]] TreeLinks tree_links(int rank, int ranks);

struct PeerLoss {
  int rank = 0;      // world rank of who is gone
  std::string text;  // one sentence
};

class PeerWatch {
 public:
  struct Options {
    double silent_seconds = 6;  // without an answer until a host counts as gone; 0 = no watch
    /// On the rank that notices a loss, before the others hear of it. Two ranks may notice it at
    /// once.
    std::function<void(const PeerLoss&)> say;
    /// Then, on every rank that is left, in the watching thread: ends the process.
    std::function<void()> end;
    /// On the ranks beside one that ends with an error which it has told, before end().
    std::function<void(const PeerLoss&)> hear = {};
  };
  /// Collective. Waits some seconds at most for connections that do not come about.
  PeerWatch(Communicator& world, const Options& options);
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;
  /// Ends the watch. This rank is not missed from now on.
  ~PeerWatch();

  /// Which connections could not be made, for all ranks: "" or one sentence; they are not watched.
  [[nodiscard]] const std::string& gaps() const { return gaps_; }
  /// Of this rank, which are there, in ring and tree.
  [[nodiscard]] int connections() const { return connections_; }
  /// This rank ends with an error that the others do not know of: they shall miss it.
  void end_unnoticed();
  /// The same, and all hear why at once: what this rank still has to write down or to ask may take
  /// as long as it likes. They leave it some seconds, then they end.
  void end_with(const std::string& cause);

 private:
  class Thread;
  std::string gaps_;
  int connections_ = 0;
  std::unique_ptr<Thread> thread_;
};

}  // namespace t3d
