// Operations that only move bytes: all-gather, broadcast, exchange, barrier.
#include "comm/collectives.hpp"

#include <cstring>
#include <map>
#include <numeric>

#include "comm/rounds.hpp"

namespace t3d {
namespace {

// Transports never write through what they send.
void* sendable(const void* data) { return const_cast<void*>(data); }

class Transfer final : public Operation {
 public:
  explicit Transfer(const Party& party) : lanes_(party.engine.transport(), party.tag) {}
  [[nodiscard]] Lanes& lanes() { return lanes_; }
  bool advance() override { return lanes_.advance(); }
  [[nodiscard]] Traffic traffic() const override { return lanes_.traffic(); }
  void missing(std::set<int>& peers) const override { lanes_.missing(peers); }

 private:
  Lanes lanes_;
};

class Barrier final : public Operation {
 public:
  explicit Barrier(const Party& party) : rounds_(party) {
    const int n = party.size();
    for (int distance = 1; distance < n; distance *= 2) {
      rounds_.send_to(party.member(party.rank + distance)).add_token();
      rounds_.receive_from(party.member(party.rank + n - distance)).add_token();
    }
  }
  bool advance() override {
    return rounds_.advance([](std::size_t) {});
  }
  [[nodiscard]] Traffic traffic() const override { return rounds_.traffic(); }
  void missing(std::set<int>& peers) const override { rounds_.missing(peers); }

 private:
  Rounds rounds_;
};

}  // namespace

void copy_bytes(void* to, const void* from, index_t bytes) {
  if (bytes > 0 && to != from) std::memmove(to, from, static_cast<std::size_t>(bytes));
}

std::vector<Exchange> messages_to_self(int rank, std::span<const Exchange> messages) {
  std::vector<Exchange> own;
  std::size_t received = 0;
  for (const Exchange& message : messages)
    if (message.peer == rank && !message.send.empty()) own.push_back({rank, message.send, {}});
  for (const Exchange& message : messages) {
    if (message.peer != rank || message.receive.empty()) continue;
    T3D_CHECK(received < own.size(), "more messages received from oneself than sent");
    T3D_CHECK(own[received].send.bytes() == message.receive.bytes(),
              "{} bytes to oneself, {} received", own[received].send.bytes(),
              message.receive.bytes());
    own[received++].receive = message.receive;
  }
  T3D_CHECK(received == own.size(), "{} messages to oneself, {} received", own.size(), received);
  return own;
}

OperationPtr make_all_gather(const Party& party, ConstTensorView part, TensorView whole,
                             std::span<const index_t> counts) {
  if (gathers_in_rounds(whole.bytes(), party.size()))
    return make_gather_in_rounds(party, part, whole, counts);
  auto operation = std::make_unique<Transfer>(party);
  const index_t size = size_of(whole.dtype);
  const int n = party.size();
  std::vector<index_t> offsets(counts.size() + 1, 0);
  std::partial_sum(counts.begin(), counts.end(), offsets.begin() + 1);
  const auto place = [&](int rank) {
    return static_cast<std::byte*>(whole.data) + offsets[static_cast<std::size_t>(rank)] * size;
  };
  const auto bytes = [&](int rank) { return counts[static_cast<std::size_t>(rank)] * size; };
  if (bytes(party.rank) > 0) copy_bytes(place(party.rank), part.data, bytes(party.rank));
  for (int distance = 1; distance < n; ++distance) {  // staggered: nobody is everybody's first
    const int to = (party.rank + distance) % n;
    const int from = (party.rank + n - distance) % n;
    Lanes& lanes = operation->lanes();
    if (bytes(party.rank) > 0)
      lanes.send_to(party.member(to)).add(sendable(part.data), bytes(party.rank));
    if (bytes(from) > 0) lanes.receive_from(party.member(from)).add(place(from), bytes(from));
  }
  return operation;
}

OperationPtr make_broadcast(const Party& party, TensorView x, int root) {
  if (party.size() > kFlatRanks) return make_tree_broadcast(party, x, root);
  auto operation = std::make_unique<Transfer>(party);
  if (party.rank != root) {
    const int from = party.member(root);
    operation->lanes().receive_from(from).add(x.data, x.bytes());
    return operation;
  }
  for (int distance = 1; distance < party.size(); ++distance) {
    const int to = (root + distance) % party.size();
    operation->lanes().send_to(party.member(to)).add(x.data, x.bytes());
  }
  return operation;
}

OperationPtr make_exchange(const Party& party, std::span<const Exchange> messages) {
  auto operation = std::make_unique<Transfer>(party);
  Lanes& lanes = operation->lanes();
  // One lane per peer and direction keeps several messages with one peer in order.
  std::map<int, std::size_t> send_lane, receive_lane;
  for (const Exchange& message : messages) {
    if (message.peer == party.rank) continue;
    const int peer = party.member(message.peer);
    if (!message.send.empty()) {
      const auto [lane, fresh] = send_lane.try_emplace(peer, lanes.sends().size());
      if (fresh) lanes.send_to(peer);
      lanes.sends()[lane->second].add(sendable(message.send.data), message.send.bytes());
    }
    if (!message.receive.empty()) {
      const auto [lane, fresh] = receive_lane.try_emplace(peer, lanes.receives().size());
      if (fresh) lanes.receive_from(peer);
      lanes.receives()[lane->second].add(message.receive.data, message.receive.bytes());
    }
  }
  for (const Exchange& own : messages_to_self(party.rank, messages))
    copy_bytes(own.receive.data, own.send.data, own.send.bytes());
  return operation;
}

OperationPtr make_barrier(const Party& party) { return std::make_unique<Barrier>(party); }

}  // namespace t3d
