#include "comm/peers/peer_outbox.hpp"

#include <sys/socket.h>

#include <cerrno>

namespace t3d {

bool PeerOutbox::has_more() const {
  return !begun_.empty() || (!waiting_.empty() && !is_unheard());
}

void PeerOutbox::beat(const Descriptor& socket, char letter) {
  if (!begun_.empty() || is_unheard()) return;
  begun_ = letter;
  if (!send_begun(socket)) begun_.clear();
}

void PeerOutbox::send(const Descriptor& socket) {
  if (!socket) return drop();
  while (send_begun(socket) && !waiting_.empty() && !is_unheard())
    begun_ = std::move(waiting_.extract(waiting_.begin()).mapped());
}

void PeerOutbox::drop() {
  begun_.clear();
  waiting_.clear();
}

/// Whether all of it is on its way. A broken connection is noticed where it is read.
bool PeerOutbox::send_begun(const Descriptor& socket) {
  while (!begun_.empty()) {
    const ssize_t sent =
        ::send(socket.get(), begun_.data(), begun_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN && errno != ENOBUFS) drop();
    if (sent <= 0) return false;
    begun_.erase(0, static_cast<std::size_t>(sent));
    unheard_ += static_cast<std::size_t>(sent);
  }
  return true;
}

}  // namespace t3d
