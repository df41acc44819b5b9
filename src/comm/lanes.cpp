#include "comm/lanes.hpp"

#include <algorithm>
#include <cstddef>

namespace t3d {

void Lane::add(void* data, index_t bytes, index_t chunk_bytes) {
  for (index_t at = 0; at < bytes; at += chunk_bytes)
    pieces_.push_back({static_cast<std::byte*>(data) + at, std::min(chunk_bytes, bytes - at)});
}

bool Lane::advance(index_t limit) {
  for (; retired_ < posted_ && transport_->finished(request(retired_)); ++retired_)
    transport_->count_done();
  const index_t end = std::min({pieces(), limit, retired_ + kWindow});
  for (; posted_ < end; ++posted_) {
    const Piece& piece = pieces_[static_cast<std::size_t>(posted_)];
    request(posted_) = direction_ == Direction::send
                           ? transport_->send(peer_, tag_, piece.data, piece.bytes)
                           : transport_->receive(peer_, tag_, piece.data, piece.bytes);
  }
  return finished();
}

void Lane::cancel() noexcept {
  for (; retired_ < posted_; ++retired_) transport_->cancel(request(retired_));
}

index_t Lane::bytes() const {
  index_t bytes = 0;
  for (const Piece& piece : pieces_) bytes += piece.bytes;
  return bytes;
}

Lanes::~Lanes() {
  for (Lane& lane : sends_) lane.cancel();
  for (Lane& lane : receives_) lane.cancel();
}

Lane& Lanes::send_to(int peer) {
  return sends_.emplace_back(*transport_, Lane::Direction::send, peer, tag_);
}

Lane& Lanes::receive_from(int peer) {
  return receives_.emplace_back(*transport_, Lane::Direction::receive, peer, tag_);
}

bool Lanes::advance_sends() {
  bool finished = true;
  for (Lane& lane : sends_) finished = (lane.finished() || lane.advance()) && finished;
  return finished;
}

bool Lanes::advance_receives() {
  bool finished = true;
  for (Lane& lane : receives_) finished = (lane.finished() || lane.advance()) && finished;
  return finished;
}

bool Lanes::advance() {
  const bool received = advance_receives();
  return advance_sends() && received;
}

Traffic Lanes::traffic() const {
  Traffic sum;
  for (const Lane& lane : sends_) sum += {lane.bytes(), lane.empty() ? 0 : 1};
  return sum;
}

void Lanes::missing(std::set<int>& peers) const {
  for (const Lane& lane : receives_)
    if (!lane.finished()) peers.insert(lane.peer());
  for (const Lane& lane : sends_)
    if (!lane.finished()) peers.insert(lane.peer());
}

}  // namespace t3d
