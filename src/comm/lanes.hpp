// Lanes: the messages of one operation, one lane per (peer, direction). A lane is an ordered list
// of pieces of at most a chunk, of which a few are in flight at a time: what has arrived can be
// worked on while the rest is under way, and no peer's slowness holds up the others.
#pragma once
#include <array>
#include <limits>
#include <set>
#include <vector>

#include "comm/cost.hpp"
#include "comm/transport.hpp"

namespace t3d {

class Lane {
 public:
  enum class Direction { send, receive };
  /// Large enough to hide latency, small enough to stay in the second-level cache and below the
  /// sizes at which shared-memory transports get slow.
  static constexpr index_t kChunkBytes = index_t{512} << 10;
  static constexpr index_t kNoLimit = std::numeric_limits<index_t>::max();

  Lane(Transport& transport, Direction direction, int peer, int tag)
      : transport_(&transport), direction_(direction), peer_(peer), tag_(tag) {}

  /// Appends `bytes` at `data`, cut into chunks; nothing when there are none.
  void add(void* data, index_t bytes, index_t chunk_bytes = kChunkBytes);
  /// Appends a message without content.
  void add_token() { pieces_.push_back({}); }

  /// Posts what the window and `limit` (number of pieces that may be posted so far) allow and
  /// retires what has finished. True when all pieces have.
  bool advance(index_t limit = kNoLimit);
  void cancel() noexcept;

  [[nodiscard]] bool finished() const { return retired_ == pieces(); }
  [[nodiscard]] bool empty() const { return pieces_.empty(); }
  [[nodiscard]] index_t retired() const { return retired_; }
  [[nodiscard]] index_t bytes() const;
  [[nodiscard]] int peer() const { return peer_; }

 private:
  static constexpr index_t kWindow = 4;
  struct Piece {
    void* data = nullptr;
    index_t bytes = 0;
  };
  [[nodiscard]] index_t pieces() const { return static_cast<index_t>(pieces_.size()); }
  Transport::Request& request(index_t piece) {
    return requests_[static_cast<std::size_t>(piece % kWindow)];
  }

  Transport* transport_;
  Direction direction_;
  int peer_;
  int tag_;
  std::vector<Piece> pieces_;
  index_t posted_ = 0;
  index_t retired_ = 0;
  std::array<Transport::Request, kWindow> requests_{};
};

/// All lanes of one operation; cancels what is unfinished when it goes away.
class Lanes {
 public:
  Lanes(Transport& transport, int tag) : transport_(&transport), tag_(tag) {}
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;
  ~Lanes();

  Lane& send_to(int peer);
  Lane& receive_from(int peer);
  [[nodiscard]] std::vector<Lane>& sends() { return sends_; }
  [[nodiscard]] std::vector<Lane>& receives() { return receives_; }
  [[nodiscard]] const std::vector<Lane>& receives() const { return receives_; }

  bool advance_sends();
  bool advance_receives();
  bool advance();
  [[nodiscard]] Traffic traffic() const;
  /// Adds the ranks that have not sent or not taken what they should.
  void missing(std::set<int>& peers) const;

 private:
  Transport* transport_;
  int tag_;
  std::vector<Lane> sends_, receives_;
};

}  // namespace t3d
