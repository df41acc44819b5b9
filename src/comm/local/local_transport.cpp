#include "comm/local/local_transport.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>

#include "core/error.hpp"

namespace t3d {

using State = LocalHub::State;

void LocalHub::post(int to, Envelope envelope) {
  Inbox& inbox = inboxes_[static_cast<std::size_t>(to)];
  const std::lock_guard lock(inbox.mutex);
  inbox.envelopes.push_back(std::move(envelope));
  ++inbox.waiting;
}

void LocalHub::collect(int rank, std::deque<Envelope>& arrived) {
  Inbox& inbox = inboxes_[static_cast<std::size_t>(rank)];
  if (inbox.waiting.load() == 0) return;
  const std::lock_guard lock(inbox.mutex);
  for (Envelope& envelope : inbox.envelopes) arrived.push_back(std::move(envelope));
  inbox.envelopes.clear();
  inbox.waiting = 0;
}

void LocalHub::leave(int rank, const std::string& reason) {
  if (!reason.empty()) {
    const std::lock_guard lock(failure_mutex_);
    if (failure_.empty()) failure_ = fmt::format("rank {} failed: {}", rank, reason);
    failed_ = true;
  }
  inboxes_[static_cast<std::size_t>(rank)].left = true;
  ++left_count_;
}

std::string LocalHub::failure() {
  if (!failed_.load()) return {};
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}

Transport::Request LocalTransport::free_slot() {
  if (free_.empty()) {
    slots_.emplace_back();
    return static_cast<Request>(slots_.size()) - 1;
  }
  const Request request = free_.back();
  free_.pop_back();
  return request;
}

Transport::Request LocalTransport::send(int peer, int tag, const void* data, index_t bytes) {
  const Request request = free_slot();
  auto state = std::make_shared<std::atomic<State>>(State::offered);
  slots_[static_cast<std::size_t>(request)] = {true, true, false, peer, tag, nullptr, bytes, state};
  hub_->post(peer, {rank_, tag, data, bytes, std::move(state)});
  return request;
}

Transport::Request LocalTransport::receive(int peer, int tag, void* data, index_t bytes) {
  const Request request = free_slot();
  slots_[static_cast<std::size_t>(request)] = {true, false, false, peer, tag, data, bytes, nullptr};
  receiving_.push_back(request);
  return request;
}

bool LocalTransport::take(Slot& slot) {
  const auto envelope =
      std::find_if(arrived_.begin(), arrived_.end(), [&](const LocalHub::Envelope& candidate) {
        return candidate.source == slot.peer && candidate.tag == slot.tag;
      });
  if (envelope == arrived_.end()) return false;
  T3D_CHECK(envelope->bytes == slot.bytes, "rank {} sent {} bytes instead of {}: its verbs differ",
            slot.peer, envelope->bytes, slot.bytes);
  State offered = State::offered;
  if (!envelope->state->compare_exchange_strong(offered, State::copying))
    throw_error(ExitCode::peer_lost, "rank {} withdrew a message", slot.peer);
  if (slot.bytes > 0) std::memcpy(slot.data, envelope->data, static_cast<std::size_t>(slot.bytes));
  envelope->state->store(State::copied);
  arrived_.erase(envelope);
  slot.arrived = true;
  return true;
}

void LocalTransport::poll() {
  if (const std::string failure = hub_->failure(); !failure.empty())
    throw Error(ExitCode::peer_lost, failure);
  // Who had left before the inbox was emptied cannot have anything more to say.
  std::vector<bool> left;
  if (hub_->anyone_left())
    for (int peer = 0; peer < size(); ++peer) left.push_back(hub_->has_left(peer));
  hub_->collect(rank_, arrived_);
  const auto taken = std::remove_if(receiving_.begin(), receiving_.end(), [this](Request request) {
    return take(slots_[static_cast<std::size_t>(request)]);
  });
  receiving_.erase(taken, receiving_.end());
  if (!left.empty()) check_alive(left);
}

void LocalTransport::check_alive(const std::vector<bool>& left) {
  for (const Slot& slot : slots_) {
    if (!slot.used || !left[static_cast<std::size_t>(slot.peer)]) continue;
    const bool open = slot.sends ? slot.state->load() == State::offered : !slot.arrived;
    if (open) throw_error(ExitCode::peer_lost, "rank {} has ended", slot.peer);
  }
}

bool LocalTransport::finished(Request request) {
  Slot& slot = slots_[static_cast<std::size_t>(request)];
  if (slot.sends ? slot.state->load() != State::copied : !slot.arrived) return false;
  slot = {};
  free_.push_back(request);
  return true;
}

void LocalTransport::cancel(Request request) noexcept {
  Slot& slot = slots_[static_cast<std::size_t>(request)];
  if (slot.sends) {
    State offered = State::offered;
    if (!slot.state->compare_exchange_strong(offered, State::withdrawn))
      while (slot.state->load() != State::copied) sched_yield();  // the receiver is reading
  } else {
    receiving_.erase(std::remove(receiving_.begin(), receiving_.end(), request), receiving_.end());
  }
  slot = {};
  free_.push_back(request);
}

}  // namespace t3d
