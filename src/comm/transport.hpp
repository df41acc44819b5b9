// Transport: the little that the collectives need from MPI, from threads, or from whatever comes
// next: messages of bytes between the ranks of the world. Messages of one (sender, tag) arrive in
// the order in which they were sent. Used by one thread per rank.
#pragma once
#include "core/types.hpp"
#include "device/host_limits.hpp"

namespace t3d {

class Transport {
 public:
  /// Names a message in flight; free for reuse once finished() has said true or after cancel().
  using Request = int;
  /// Tags are below this (what every MPI library can carry).
  static constexpr int kTagBits = 23;

  virtual ~Transport() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// A number of this rank's node: the same for ranks that share memory, another for others.
  [[nodiscard]] virtual int node() const { return 0; }
  /// Ranks on this rank's node, and cores that they can compute on together.
  [[nodiscard]] virtual int ranks_here() const { return size(); }
  [[nodiscard]] virtual int cores_here() const { return cores_available(); }
  /// `data` stays untouched until the request has finished. `peer` is never the own rank.
  [[nodiscard]] virtual Request send(int peer, int tag, const void* data, index_t bytes) = 0;
  [[nodiscard]] virtual Request receive(int peer, int tag, void* data, index_t bytes) = 0;
  /// Advances all messages. Throws Error(peer_lost) when a peer is gone.
  virtual void poll() = 0;
  /// Whether the last poll() found it complete.
  [[nodiscard]] virtual bool finished(Request request) = 0;
  /// Gives up on a message of a failed group.
  virtual void cancel(Request request) noexcept = 0;

  /// Messages that have come or gone so far: what waits look at for progress.
  [[nodiscard]] index_t messages_done() const { return messages_done_; }
  void count_done() { ++messages_done_; }

 private:
  index_t messages_done_ = 0;
};

}  // namespace t3d
