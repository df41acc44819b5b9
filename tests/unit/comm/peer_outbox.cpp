// What a neighbour is told while it does not read: whole messages, and in the end the newest word
// of each rank.
#include "comm/peers/peer_outbox.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "comm/agree.hpp"
#include "comm/idle_clock.hpp"
#include "comm/peers/peer_watch.hpp"
#include "support/catch.hpp"

namespace t3d::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kFirst = 100, kRanks = 400, kNumbers = 150;  // 12 MB: more than sockets hold

std::string four_bytes(int number) {
  std::string text;
  for (int byte = 0; byte < 4; ++byte) text += static_cast<char>(number >> (8 * byte) & 0xFF);
  return text;
}

/// That rank is busy; the last word of all says that it is not any more.
std::string word_of(int rank, int number) {
  const std::string text = number == kNumbers ? "" : std::string(200, 'x');
  return 'w' + four_bytes(rank) + four_bytes(number) + static_cast<char>(text.size()) + text;
}

/// A connection of a rank that is stopped and goes on later.
struct Reader {
  Descriptor socket;
  std::string unread{};
  std::vector<int> numbers = std::vector<int>(kRanks, 0);
  bool broken = false;

  [[nodiscard]] bool knows_all() const {
    for (const int number : numbers)
      if (number != kNumbers) return false;
    return true;
  }
  /// Waits for a moment.
  void read() {
    pollfd entry{socket.get(), POLLIN, 0};
    if (poll(&entry, 1, 100) <= 0) return;
    std::array<char, 65536> bytes{};
    const ssize_t got = recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got <= 0) return;
    unread.append(bytes.data(), static_cast<std::size_t>(got));
    while (!broken && take()) {
    }
  }
  /// One message from the front; false where none is whole.
  bool take() {
    if (unread.empty()) return false;
    if (unread[0] == 'h') return unread.erase(0, 1), true;
    if (unread.size() < 10) return false;
    const auto number_at = [&](std::size_t at) {
      return static_cast<unsigned char>(unread[at]) | static_cast<unsigned char>(unread[at + 1])
                                                          << 8;
    };
    const int rank = number_at(1) - kFirst, number = number_at(5);
    const std::size_t length = static_cast<unsigned char>(unread[9]);
    broken = unread[0] != 'w' || rank < 0 || rank >= kRanks || number < 1 || number > kNumbers ||
             length != (number == kNumbers ? 0 : 200);
    if (broken || unread.size() < 10 + length) return false;
    numbers[static_cast<std::size_t>(rank)] = number;
    unread.erase(0, 10 + length);
    return true;
  }
};

void send_whole(const Descriptor& socket, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t sent = send(socket.get(), text.data() + at, text.size() - at, MSG_NOSIGNAL);
    if (sent > 0) at += static_cast<std::size_t>(sent);
    pollfd entry{socket.get(), POLLOUT, 0};
    if (sent <= 0 && poll(&entry, 1, 20'000) <= 0) return;
  }
}

/// Rank 1 of two whose thread of the ring is in the test's hands: its connections to rank 0.
std::array<Reader, 2> connect_by_hand(Communicator& world) {
  const std::uint64_t secret = std::stoull(broadcast_text(world, ""));
  PeerAddress own;
  const Descriptor listener = listen_for_peers(own);
  const PeerAddress other = peer_address_of(all_gather_texts(world, own.text()).front());
  const Deadline deadline = Clock::now() + std::chrono::seconds(10);
  Descriptor accepted;
  std::thread accepting(
      [&] { accepted = std::move(accept_peers(listener, secret, {0}, deadline).front()); });
  Descriptor made = connect_to_peer(other, own.host, {secret, 1}, deadline);
  accepting.join();
  static_cast<void>(all_gather_texts(world, ""));
  return {Reader{std::move(made)}, Reader{std::move(accepted)}};
}

}  // namespace

TEST_CASE("a neighbour that was stopped reads whole messages, and the newest word of every rank") {
  std::atomic<int> ended{0};
  PeerWatch::Options options;
  options.say = [](const PeerLoss&) {};
  options.end = [&] { ++ended; };
  run_local_ranks(2, [&](Communicator& world) {
    if (world.rank() == 0) {
      const PeerWatch watch(world, options);
      CHECK(watch.connections() == 2);
      return world.barrier();
    }
    auto readers = connect_by_hand(world);
    // Rank 0 passes all of it on, over both connections.
    for (int number = 1; number <= kNumbers; ++number)
      for (int rank = kFirst; rank < kFirst + kRanks; ++rank)
        send_whole(readers[0].socket, word_of(rank, number));
    for (Reader& reader : readers) {
      const Deadline deadline = Clock::now() + std::chrono::seconds(20);
      while (!reader.knows_all() && !reader.broken && Clock::now() < deadline) {
        reader.read();
        send_whole(reader.socket, "h");
      }
      CHECK_FALSE(reader.broken);
      CHECK(reader.knows_all());
    }
    for (const Reader& reader : readers) send_whole(reader.socket, "b");
    world.barrier();
  });
  CHECK(ended == 0);
}

TEST_CASE("a stopped neighbour is not spoken to, but its socket keeps room for the last word") {
  PeerAddress own;
  const Descriptor listener = listen_for_peers(own);
  const Deadline deadline = Clock::now() + std::chrono::seconds(10);
  Descriptor here;
  std::thread caller([&] { here = connect_to_peer(own, own.host, {1, 1}, deadline); });
  const Descriptor there = std::move(accept_peers(listener, 1, {1}, deadline).front());
  caller.join();
  set_silence_limit(here, 6);
  PeerOutbox outbox;
  for (int beat = 0; beat < 100'000; ++beat) outbox.beat(here, 'h');
  outbox.put({'w', 1}, "old");
  outbox.put({'w', 1}, "new");
  outbox.send(here);
  CHECK_FALSE(outbox.has_more());  // that may be sent
  const auto read = [&] {
    std::string all;
    std::array<char, 65536> bytes{};
    for (pollfd entry{there.get(), POLLIN, 0}; poll(&entry, 1, 200) > 0;) {
      const ssize_t got = recv(there.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (got <= 0) break;
      all.append(bytes.data(), static_cast<std::size_t>(got));
    }
    return all;
  };
  CHECK(read().find_first_not_of('h') == std::string::npos);
  outbox.heard();
  outbox.send(here);
  CHECK(read() == "new");
  for (int beat = 0; beat < 100'000; ++beat) outbox.beat(here, 'h');
  outbox.put_last("last");
  outbox.send(here);
  CHECK_FALSE(outbox.has_more());
  CHECK(read().ends_with("last"));
}

}  // namespace t3d::test
