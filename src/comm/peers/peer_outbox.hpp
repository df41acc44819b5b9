// What is to be said to one neighbour and has not been taken by its socket yet. Nobody waits here:
// a socket without room is tried again later. A message goes out whole, or its rest before all
// others, so that the reader never begins in the middle of one. Internal to `comm/peers`.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "comm/peers/peer_sockets.hpp"

namespace t3d {

class PeerOutbox {
 public:
  /// What a message is about: its kind, and the rank. Of two with one key only the newer one is
  /// sent, so that no more waits than there are keys.
  using Key = std::pair<char, int>;
  /// Sent without a word from the neighbour. It is stopped then: what else there is to say waits
  /// here, and the socket keeps room for the last words.
  static constexpr std::size_t kUnheardBytes = 16384;

  void put(const Key& key, std::string message) { waiting_[key] = std::move(message); }
  /// Nothing matters behind it: it takes the place of what waits, also for a stopped neighbour.
  void put_last(const std::string& message) {
    begun_ += message;
    waiting_.clear();
  }
  /// One letter that is left out where the socket, or the neighbour, does not keep up.
  void beat(const Descriptor& socket, char letter);
  /// The neighbour has said something.
  void heard() { unheard_ = 0; }

  /// There is something that the socket may take.
  [[nodiscard]] bool has_more() const;
  /// Sends what the socket takes now. Nothing is kept without a connection.
  void send(const Descriptor& socket);

 private:
  [[nodiscard]] bool is_unheard() const { return unheard_ >= kUnheardBytes; }
  void drop();
  [[nodiscard]] bool send_begun(const Descriptor& socket);

  std::string begun_;  // of a message, or of several: what the socket has not taken
  std::map<Key, std::string> waiting_;
  std::size_t unheard_ = 0;  // bytes sent since the neighbour has said something
};

}  // namespace t3d
