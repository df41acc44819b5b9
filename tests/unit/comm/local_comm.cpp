// The in-process back end: the verbs among threads, and what happens when a rank fails or stays
// away.
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <string>
#include <thread>

#include "comm/communicator.hpp"
#include "support/catch.hpp"
#include "support/comm_cases.hpp"

namespace t3d {
namespace {

using namespace std::chrono_literals;

TEST_CASE("every verb among threads, twice the same", "[local]") {
  for (const int ranks : {1, 2, 3, 4, 6}) {
    std::vector<std::array<test::Digest, 2>> digests(static_cast<std::size_t>(ranks));
    run_local_ranks(ranks, [&](Communicator& world) {
      auto& own = digests[static_cast<std::size_t>(world.rank())];
      own = {test::check_every_verb(world), test::check_every_verb(world)};
    });
    for (const auto& [first, second] : digests) CHECK(first == second);
  }
}

TEST_CASE("small verbs among many threads, the same on every rank", "[local]") {
  for (const int ranks : {17, 24, 33})
    run_local_ranks(ranks, [](Communicator& world) { (void)test::check_small_verbs(world); });
}

TEST_CASE("a maximum over many ranks that contains a NaN is a NaN", "[local]") {
  for (const int where : {0, 9, 17}) {
    run_local_ranks(18, [&](Communicator& world) {
      std::array<float, 2> x{static_cast<float>(world.rank()), 1.0F};
      if (world.rank() == where) x[0] = std::nanf("");
      world.all_reduce({x.data(), DType::f32, 1, 2}, ReduceOp::max).wait_host();
      T3D_CHECK(std::isnan(x[0]) && x[1] == 1.0F, "{} {}", x[0], x[1]);
    });
  }
}

TEST_CASE("many operations in flight and many groups among threads", "[local]") {
  for (const int ranks : {1, 2, 5, 6, 18}) {
    run_local_ranks(ranks, test::check_many_in_flight);
    if (ranks < 16) run_local_ranks(ranks, test::check_subgroups);
  }
}

// What run_local_ranks throws.
Error error_of(int ranks, const std::function<void(Communicator&)>& body) {
  try {
    run_local_ranks(ranks, body);
  } catch (const Error& error) {
    return error;
  }
  return {ExitCode::done, "no error"};
}

bool contains(const Error& error, const std::string& text) {
  return std::string(error.what()).find(text) != std::string::npos;
}

TEST_CASE("a rank that stays away ends the wait with a message that names it", "[local]") {
  std::atomic<bool> over = false;
  const Error error = error_of(4, [&](Communicator& world) {
    const auto line = world.subgroup({3, 2, 1, 0}, "k");
    float x = 1;
    line->all_reduce({&x, DType::f32, 1, 1}, ReduceOp::sum).wait_host();
    if (world.rank() == 2) {
      while (!over) std::this_thread::sleep_for(1ms);
      return;
    }
    world.set_watchdog(world.rank() == 0 ? 0.1 : 0);
    std::vector<float> whole(4000);
    const std::vector<index_t> counts(4, 1000);
    try {
      line->all_gather({whole.data() + 1000 * line->rank(), DType::f32, 1, 1000},
                       {whole.data(), DType::f32, 1, 4000}, counts)
          .wait_host();
    } catch (const Error&) {
      over = true;
      throw;
    }
  });
  INFO(error.what());
  CHECK(error.code() == ExitCode::peer_lost);
  CHECK(contains(error, "rank 0 has waited"));
  CHECK(contains(error, "all_gather on axis k"));
  CHECK(contains(error, "12000 bytes to send"));
  CHECK(contains(error, "missing: world rank 2."));
  CHECK(contains(error, "all_reduce on k, 12 bytes sent, finished"));
  CHECK(contains(error, "all_gather on k, 12000 bytes sent, IN FLIGHT"));
}

TEST_CASE("while messages arrive the deadline moves", "[local]") {
  run_local_ranks(2, [](Communicator& world) {
    std::array<float, 8> x{};
    if (world.rank() == 1) {
      for (float& number : x) {
        std::this_thread::sleep_for(100ms);
        world.exchange({{0, TensorView(&number, DType::f32, 1, 1), {}}}).wait_host();
      }
      return;
    }
    world.set_watchdog(0.4);  // less than all of them take
    std::vector<Work> works;
    for (float& number : x)
      works.push_back(world.exchange({{1, {}, TensorView(&number, DType::f32, 1, 1)}}));
    works.back().wait_host();
  });
}

TEST_CASE("groups of a label may have a limit of their own", "[local]") {
  // Longer than the watchdog's: a rank that writes a file is not lost.
  run_local_ranks(3, [](Communicator& world) {
    world.set_watchdog(0.1);
    world.set_wait_limit("files", 20);
    const auto files = world.subgroup({0, 1, 2}, "files");
    if (world.rank() == 0) std::this_thread::sleep_for(400ms);
    const auto some = files->subgroup({2, 1, 0}, "files");  // waits as long, too
    if (world.rank() == 1) std::this_thread::sleep_for(400ms);
    some->barrier();
  });
  // And it ends: rank 1 stays away.
  std::atomic<bool> over = false;
  const Error error = error_of(2, [&](Communicator& world) {
    world.set_wait_limit("files", 0.1);
    const auto files = world.subgroup({0, 1}, "files");
    if (world.rank() == 1) {
      while (!over) std::this_thread::sleep_for(1ms);
      return;
    }
    try {
      files->barrier();
    } catch (const Error&) {
      over = true;
      throw;
    }
  });
  CHECK(error.code() == ExitCode::peer_lost);
  CHECK(contains(error, "barrier on axis files"));
}

TEST_CASE("the error of a failed rank is the one that is reported, and nobody hangs", "[local]") {
  std::atomic<int> peers_lost = 0;
  const Error error = error_of(3, [&](Communicator& world) {
    if (world.rank() == 1) throw_error(ExitCode::io, "disk full");
    try {
      world.barrier();
    } catch (const Error& lost) {
      if (lost.code() == ExitCode::peer_lost && contains(lost, "disk full")) ++peers_lost;
      try {  // and it stays failed
        world.barrier();
      } catch (const Error& again) {
        if (again.code() == ExitCode::peer_lost) throw;
      }
    }
  });
  CHECK(error.code() == ExitCode::io);
  CHECK(contains(error, "disk full"));
  CHECK(peers_lost == 2);
}

TEST_CASE("waiting for a rank that has ended is an error", "[local]") {
  const Error error = error_of(2, [&](Communicator& world) {
    if (world.rank() == 0) world.barrier();
  });
  CHECK(error.code() == ExitCode::peer_lost);
  CHECK(contains(error, "rank 1 has ended"));
}

TEST_CASE("an error between start and wait abandons the operation without waiting", "[local]") {
  const Error error = error_of(2, [&](Communicator& world) {
    std::vector<float> x(100000, 1);
    const Work work = world.all_reduce({x.data(), DType::f32, 1, 100000}, ReduceOp::sum);
    if (world.rank() == 1) throw_error(ExitCode::config, "changed my mind");
  });
  CHECK(error.code() == ExitCode::config);
}

TEST_CASE("ranks that call different verbs are told so", "[local]") {
  const Error error = error_of(2, [&](Communicator& world) {
    std::vector<float> x(100, 1);
    const index_t count = world.rank() == 0 ? 100 : 99;
    world.all_reduce({x.data(), DType::f32, 1, count}, ReduceOp::sum).wait_host();
  });
  CHECK(error.code() == ExitCode::internal);
  CHECK(contains(error, "its verbs differ"));
}

TEST_CASE("wrong calls are refused before anything is sent", "[local]") {
  const auto world = make_single_communicator();
  std::vector<float> x(12);
  const std::vector<index_t> counts{12};
  const std::vector<index_t> two{6, 6};
  const TensorView view(x.data(), DType::f32, 1, 12);
  const TensorView strided(x.data(), DType::f32, 3, 2, 4);
  CHECK_THROWS_AS(world->all_gather(view, view, two), Error);
  CHECK_THROWS_AS(world->all_gather(view.col_range(0, 5), view, counts), Error);
  CHECK_THROWS_AS(world->all_reduce(strided, ReduceOp::sum), Error);
  CHECK_THROWS_AS(world->all_reduce(view, ReduceOp::bit_or), Error);
  CHECK_THROWS_AS(world->broadcast(view, 1), Error);
  CHECK_THROWS_AS(world->exchange({{1, view, {}}}), Error);
  CHECK_THROWS_AS(world->subgroup({}, "x"), Error);
}

TEST_CASE("waiting is timed by axis", "[local]") {
  double waited = 0;
  run_local_ranks(2, [&](Communicator& world) {
    const auto line = world.subgroup({0, 1}, "i");
    if (world.rank() == 1) std::this_thread::sleep_for(50ms);
    line->barrier();
    if (world.rank() == 0) waited = world.wait_seconds().at("i");
  });
  CHECK(waited > 0.03);
  CHECK(waited < 10);
}

}  // namespace
}  // namespace t3d
