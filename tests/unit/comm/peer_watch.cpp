// Ranks that watch each other: who is lost is noticed by all others, once in words; who ends in
// order is not missed.
#include "comm/peers/peer_watch.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "comm/busy.hpp"
#include "comm/idle_clock.hpp"
#include "comm/peers/peer_sockets.hpp"
#include "support/catch.hpp"

namespace t3d::test {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

template <class Condition>
bool comes_true(const Condition& condition) {
  for (const auto start = Clock::now(); Clock::now() - start < std::chrono::seconds(20);) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return false;
}

struct Heard {
  std::atomic<int> said{0}, ended{0}, lost{-1};
  PeerWatch::Options options() {
    PeerWatch::Options result;
    result.say = [this](const PeerLoss& loss) {
      lost = loss.rank;
      ++said;
    };
    result.end = [this] { ++ended; };
    return result;
  }
};

}  // namespace

TEST_CASE("all others hear of a lost rank, and one of them says so") {
  for (const int ranks : {2, 3, 6}) {
    Heard heard;
    run_local_ranks(ranks, [&](Communicator& world) {
      PeerWatch watch(world, heard.options());
      CHECK(watch.gaps().empty());
      world.barrier();
      if (world.rank() == ranks / 2) watch.end_unnoticed();
      if (world.rank() != ranks / 2) CHECK(comes_true([&] { return heard.ended == ranks - 1; }));
    });
    CHECK(heard.lost == ranks / 2);
    CHECK(heard.said == 1);
    CHECK(heard.ended == ranks - 1);
  }
}

TEST_CASE("news of a loss is at all ranks after O(log ranks) hops, over few connections") {
  for (const int ranks : {2, 3, 4, 5, 7, 16, 17, 100, 1000, 10000}) {
    std::vector<std::vector<int>> links(static_cast<std::size_t>(ranks));
    const auto of = [&](int rank) -> std::vector<int>& {
      return links[static_cast<std::size_t>(rank)];
    };
    for (int rank = 0; rank < ranks; ++rank) {
      const TreeLinks tree = tree_links(rank, ranks);
      of(rank).insert(of(rank).end(), {(rank + 1) % ranks, (rank + ranks - 1) % ranks});
      of(rank).insert(of(rank).end(), tree.down.begin(), tree.down.end());
      if (tree.up >= 0) of(rank).push_back(tree.up);
    }
    int log = 0;
    while ((1 << log) < ranks) ++log;
    for (const int lost : {0, 1, ranks / 3, ranks / 2, ranks - 1}) {
      if (lost >= ranks) continue;
      std::vector<int> hops(links.size(), -1);
      std::vector<int> front{(lost + 1) % ranks};  // who notices it
      hops[static_cast<std::size_t>(front.front())] = 0;
      int most = 0;
      for (int hop = 1; !front.empty(); ++hop) {
        std::vector<int> next;
        for (const int rank : front)
          for (const int other : of(rank)) {
            CHECK(of(rank).size() <= 5);
            int& known = hops[static_cast<std::size_t>(other)];
            if (other == lost || known >= 0) continue;
            most = known = hop;
            next.push_back(other);
          }
        front = std::move(next);
      }
      INFO(ranks << " ranks without " << lost << ": " << most << " hops");
      CHECK(std::count(hops.begin(), hops.end(), -1) == 1);
      CHECK(most <= 2 * log + 2);
    }
  }
}

TEST_CASE("ranks are connected as ring and tree say, and hear of a loss over both") {
  constexpr int kRanks = 24;
  Heard heard;
  run_local_ranks(kRanks, [&](Communicator& world) {
    PeerWatch watch(world, heard.options());
    const TreeLinks tree = tree_links(world.rank(), kRanks);
    CHECK(watch.connections() == 2 + (tree.up >= 0 ? 1 : 0) + std::ssize(tree.down));
    world.barrier();
    if (world.rank() == 1) watch.end_unnoticed();
    if (world.rank() != 1) CHECK(comes_true([&] { return heard.ended == kRanks - 1; }));
  });
  CHECK(heard.said == 1);
  CHECK(heard.lost == 1);
}

TEST_CASE("why a rank ends, those beside it say, and it is not called lost") {
  Heard heard;
  std::atomic<int> told{0};
  PeerWatch::Options options = heard.options();
  options.hear = [&](const PeerLoss& loss) {
    told += loss.rank == 1 && loss.text == "rank 1 ends with an error: no room";
  };
  run_local_ranks(4, [&](Communicator& world) {
    PeerWatch watch(world, options);
    world.barrier();
    // It lives on, as one that asks Slurm: the others do not wait for its end.
    if (world.rank() == 1) watch.end_with("no room\nmore");
    CHECK(comes_true([&] { return heard.ended == 3; }));
  });
  CHECK(told == 2);
  CHECK(heard.said == 0);
}

TEST_CASE("a wait accepts that another rank is busy, up to a limit that is named") {
  Heard heard;
  set_busy_limit(4);
  run_local_ranks(2, [&](Communicator& world) {
    PeerWatch watch(world, heard.options());
    world.set_watchdog(1.5);
    const auto busy_for = [](double seconds) {
      const BusyScope busy("writing a file");
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    };
    if (world.rank() == 0) busy_for(3);
    CHECK_NOTHROW(world.barrier());
    if (world.rank() == 0) return busy_for(8);
    CHECK_THROWS_WITH(world.barrier(), contains("rank 0 has been busy with writing a file for"));
  });
  set_busy_limit(0);
  CHECK(heard.said == 0);
}

TEST_CASE("ranks that end in order are not missed, whatever the order") {
  Heard heard;
  run_local_ranks(4, [&](Communicator& world) {
    {
      const PeerWatch watch(world, heard.options());
      std::this_thread::sleep_for(milliseconds(400 * world.rank()));
    }
    world.barrier();
    std::this_thread::sleep_for(milliseconds(2500));  // longer than anybody's patience
  });
  CHECK(heard.said == 0);
  CHECK(heard.ended == 0);
}

TEST_CASE("a single rank, and a watch that is off, watch nobody") {
  Heard heard;
  PeerWatch::Options off = heard.options();
  off.silent_seconds = 0;
  run_local_ranks(2, [&](Communicator& world) {
    PeerWatch watch(world, off);
    watch.end_unnoticed();
  });
  const PeerWatch alone(*make_single_communicator(), heard.options());
  CHECK(heard.ended == 0);
}

TEST_CASE("only a peer with the secret is let in") {
  PeerAddress own;
  const Descriptor listener = listen_for_peers(own);
  REQUIRE(listener);
  const PeerAddress read = peer_address_of(own.text());
  CHECK(read.port == own.port);
  CHECK(read.addresses == own.addresses);
  CHECK(peer_address_of("").port == 0);
  CHECK(peer_address_of("no address").port == 0);
  const Deadline deadline = Clock::now() + std::chrono::seconds(10);
  Descriptor stranger, wrong_rank, friendly, accepted;
  std::thread callers([&] {
    stranger = connect_to_peer(own, own.host, {1, 7}, deadline);
    wrong_rank = connect_to_peer(own, own.host, {42, 8}, deadline);
    friendly = connect_to_peer(own, own.host, {42, 7}, deadline);
  });
  accepted = std::move(accept_peers(listener, 42, {7}, deadline).front());
  callers.join();
  CHECK_FALSE(stranger);
  CHECK_FALSE(wrong_rank);
  CHECK(friendly);
  REQUIRE(accepted);
  CHECK(send(friendly.get(), "x", 1, MSG_NOSIGNAL) == 1);
  char letter = 0;
  CHECK(comes_true([&] { return recv(accepted.get(), &letter, 1, MSG_DONTWAIT) == 1; }));
  CHECK(letter == 'x');
}

TEST_CASE("nobody to be reached: no connection, and in time") {
  PeerAddress own;
  Descriptor listener = listen_for_peers(own);
  const auto start = Clock::now();
  CHECK_FALSE(accept_peers(listener, 1, {1}, start + milliseconds(100)).front());
  listener.reset();
  CHECK_FALSE(connect_to_peer(own, own.host, {1, 1}, Clock::now() + milliseconds(500)));
  CHECK(Clock::now() - start < std::chrono::seconds(5));
}

TEST_CASE("a pause between two looks counts a second at most") {
  const auto start = IdleClock::Clock::time_point{} + std::chrono::hours(1);
  const auto at = [&](double seconds) {
    return start + std::chrono::duration_cast<IdleClock::Clock::duration>(
                       std::chrono::duration<double>(seconds));
  };
  IdleClock idle(start);
  CHECK(idle.look(at(0.5)) == Approx(0.5));
  CHECK(idle.look(at(1.25)) == Approx(1.25));
  CHECK(idle.look(at(1000)) == Approx(2.25));  // the process was stopped
  idle.progress(at(1001));
  CHECK(idle.look(at(1001.5)) == Approx(0.5));
}

}  // namespace t3d::test
