// Communicators of GPU memory: the cases of all communicators over staging, over NCCL and over
// both, and what only they promise. Ranks are threads; where NCCL is the real one, each needs a GPU
// of its own.
#include <nccl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>

#include "comm/nccl/nccl.hpp"
#include "comm/staged/mixed.hpp"
#include "comm/staged/staged.hpp"
#include "cuda/host_face.hpp"
#include "device/cuda/cuda_device.hpp"
#include "support/catch.hpp"
#include "support/comm_cases.hpp"

namespace t3d {
namespace {

using namespace std::chrono_literals;

enum class Kind { host, staged, nccl, mixed };  // mixed: NCCL with the other ones of this kind
using KindOf = std::function<Kind(int rank)>;

/// The ranks of kind mixed.
std::vector<int> owners_of(const KindOf& kind_of, int ranks) {
  std::vector<int> owners;
  for (int rank = 0; rank < ranks; ++rank)
    if (kind_of(rank) == Kind::mixed) owners.push_back(rank);
  return owners;
}

/// One rank's GPU and its communicator; `face` takes host memory, `world` memory of the device.
struct GpuRank {
  GpuRank(Communicator& host, Kind kind, int gpu, const NcclOptions& options = {},
          const std::vector<int>& owners = {})
      : device(make_cuda_device(gpu)), queue(device->make_queue()) {
    if (kind != Kind::nccl) world = make_staged_communicator(host, *device, *queue);
    if (kind == Kind::nccl) world = make_nccl_communicator(host, *device, *queue, options);
    if (kind == Kind::mixed)
      world = make_mixed_communicator(
          std::move(world),
          make_nccl_communicator(host, *device, *queue, options, host.subgroup(owners, "gpus")),
          owners);
    world->set_watchdog(20);  // a failed rank ends the test instead of hanging the others
    face = test::make_host_face(*world, *device, *queue);
  }
  std::unique_ptr<Device> device;
  std::unique_ptr<Queue> queue;
  std::unique_ptr<Communicator> world, face;
};

// Staging needs one GPU, NCCL as many as there are ranks (emulated ones cost nothing).
bool enough_gpus(Kind kind, int ranks) {
  setenv("T3D_EMULATED_GPUS", "20", 0);
  return kind == Kind::host || kind == Kind::staged || cuda_device_count() >= ranks;
}

using Body = std::function<void(Communicator& face)>;

/// Runs `body` on ranks of the kinds that `kind_of` says.
void run_ranks(int ranks, const KindOf& kind_of, const NcclOptions& options, const Body& body) {
  const std::vector<int> owners = owners_of(kind_of, ranks);
  run_local_ranks(ranks, [&](Communicator& host) {
    const Kind kind = kind_of(host.rank());
    if (!owners.empty() && kind != Kind::mixed) (void)host.subgroup({host.rank()}, "gpus");
    if (kind == Kind::host) return body(host);
    GpuRank rank(host, kind, kind == Kind::staged ? 0 : host.rank(), options, owners);
    body(*rank.face);
  });
}
void run_ranks(int ranks, Kind kind, const Body& body) {
  run_ranks(
      ranks, [kind](int) { return kind; }, {}, body);
}

// Of every rank.
std::vector<test::Digest> digests_of(int ranks, const KindOf& kind_of,
                                     const NcclOptions& options = {}) {
  std::vector<test::Digest> digests(static_cast<std::size_t>(ranks));
  run_ranks(ranks, kind_of, options, [&](Communicator& face) {
    digests[static_cast<std::size_t>(face.rank())] = test::check_every_verb(face);
  });
  return digests;
}
std::vector<test::Digest> host_digests(int ranks) {
  return digests_of(ranks, [](int) { return Kind::host; });
}

TEST_CASE("staged: every verb, to the last bit what the host group does", "[comm]") {
  for (const int ranks : {1, 2, 3, 4}) {
    const auto expected = host_digests(ranks);
    CHECK(digests_of(ranks, [](int) { return Kind::staged; }) == expected);
    CHECK(digests_of(ranks, [](int rank) { return rank % 2 == 1 ? Kind::staged : Kind::host; }) ==
          expected);
  }
}

TEST_CASE("nccl: every verb, to the last bit what the host group does", "[comm]") {
  NcclOptions rounds;
  rounds.scratch_bytes = 5000;  // many rounds per reduction
  for (const int ranks : {1, 2, 3, 4}) {
    if (!enough_gpus(Kind::nccl, ranks)) continue;
    const auto expected = host_digests(ranks);
    CHECK(digests_of(ranks, [](int) { return Kind::nccl; }) == expected);
    CHECK(digests_of(
              ranks, [](int) { return Kind::nccl; }, rounds) == expected);
  }
}

/// Owners of GPUs, of which the first two are neighbours, one that shares a GPU, one without.
Kind mixed_kind(int rank) {
  return rank == 2 ? Kind::staged : rank == 3 ? Kind::host : Kind::mixed;
}

/// Every verb in the group of those of `groups`, one in another, that has this rank.
struct GroupedVerbs {
  std::vector<test::Digest> digests = std::vector<test::Digest>(5);
  std::vector<Ledger> ledgers = std::vector<Ledger>(5);
  std::map<int, int> nccl;  // operations by size of the group

  GroupedVerbs(const KindOf& kind_of, const std::vector<std::vector<std::vector<int>>>& groups) {
    const std::map<int, int> before = emulation::nccl_operations();
    run_ranks(5, kind_of, {}, [&](Communicator& face) {
      const auto rank = static_cast<std::size_t>(face.rank());
      std::vector<std::unique_ptr<Communicator>> made;
      for (const auto& lists : groups) {
        Communicator& parent = made.empty() ? face : *made.back();
        for (const std::vector<int>& members : lists)
          if (std::ranges::max(members) < parent.size() &&
              std::ranges::count(members, parent.rank()) > 0) {
            made.push_back(parent.subgroup(members, "part"));
            break;
          }
      }
      face.ledger().clear();
      digests[rank] = test::check_every_verb(*made.back());
      made.back()->barrier();
      ledgers[rank] = face.ledger();
    });
    for (const auto& [size, count] : emulation::nccl_operations())
      if (!before.contains(size) || before.at(size) < count) nccl[size] = count;
  }
};

TEST_CASE("mixed: groups of owners of GPUs alone go by NCCL, all others through the host",
          "[comm]") {
  if (!enough_gpus(Kind::mixed, 5)) return;
  const auto check = [](const std::vector<std::vector<std::vector<int>>>& groups,
                        const std::vector<int>& sizes_by_nccl) {
    const GroupedVerbs expected([](int) { return Kind::host; }, groups);
    const GroupedVerbs mixed(mixed_kind, groups);
    CHECK(mixed.digests == expected.digests);
    for (std::size_t rank = 0; rank < 5; ++rank)
      CHECK(difference(mixed.ledgers[rank], expected.ledgers[rank]) == "");
    std::vector<int> sizes;
    for (const auto& [size, count] : mixed.nccl) sizes.push_back(size);
    CHECK(sizes == sizes_by_nccl);
    CHECK(expected.nccl.empty());
  };
  check({{{0, 1, 2, 3, 4}}}, {});
  check({{{0, 1, 4}, {2, 3}}}, {3});
  check({{{4, 0}, {3, 1, 2}}}, {2});
  check({{{0, 3}, {2, 1}, {4}}}, {});
  // Groups of groups: the owners of a staged group find each other again.
  check({{{3, 1, 0, 2, 4}}, {{4, 1}, {0, 3, 2}}}, {2});
  check({{{4, 3, 1, 0}, {2}}, {{0, 2, 3, 1}, {0}}, {{0, 1}, {2, 3}, {0}}}, {2});
}

TEST_CASE("small verbs of many GPU ranks, to the last bit what the host group does", "[comm]") {
  constexpr int kRanks = 19;  // more than exchange pairwise, and no power of two
  const auto digests = [](const KindOf& kind_of) {
    std::vector<test::Digest> all(kRanks);
    run_ranks(kRanks, kind_of, {}, [&](Communicator& face) {
      all[static_cast<std::size_t>(face.rank())] = test::check_small_verbs(face);
    });
    return all;
  };
  const auto expected = digests([](int) { return Kind::host; });
  CHECK(digests([](int rank) { return rank % 2 == 1 ? Kind::staged : Kind::host; }) == expected);
  if (enough_gpus(Kind::nccl, kRanks)) CHECK(digests([](int) { return Kind::nccl; }) == expected);
}

TEST_CASE("many operations in flight and many groups of GPU ranks", "[comm]") {
  for (const int ranks : {1, 2, 3, 4}) {
    run_ranks(ranks, Kind::staged, test::check_many_in_flight);
    run_ranks(ranks, Kind::staged, test::check_subgroups);
    run_ranks(
        ranks, [](int rank) { return rank % 2 == 0 ? Kind::staged : Kind::host; }, {},
        [](Communicator& face) {
          test::check_many_in_flight(face);
          test::check_subgroups(face);
        });
    if (!enough_gpus(Kind::nccl, ranks)) continue;
    run_ranks(ranks, Kind::nccl, test::check_subgroups);
    run_ranks(
        ranks, [](int rank) { return rank % 2 == 0 ? Kind::mixed : Kind::host; }, {},
        [](Communicator& face) {
          test::check_many_in_flight(face);
          test::check_subgroups(face);
        });
  }
}

/// A row of `count` floats on the device and its way to and from the host.
struct Row {
  Row(GpuRank& rank, std::vector<float> values)
      : rank_(&rank),
        tensor(*rank.device, DType::f32, 1, static_cast<index_t>(values.size()),
               MemoryKind::workspace) {
    write(values);
  }
  void write(const std::vector<float>& values) {
    rank_->device->copy(tensor.view().data, values.data(), tensor.view().bytes(), *rank_->queue);
  }
  [[nodiscard]] std::vector<float> read() const {
    std::vector<float> values(static_cast<std::size_t>(tensor.cols()));
    rank_->device->copy(values.data(), tensor.view().data, tensor.view().bytes(), *rank_->queue);
    rank_->queue->synchronize();
    return values;
  }
  GpuRank* rank_;
  Tensor tensor;
};

/// Two groups and a row for every verb in flight on them.
struct Flights {
  std::unique_ptr<Communicator> backwards, alone;
  std::vector<Row> rows;
  std::vector<Work> works;

  explicit Flights(GpuRank& rank) {
    const int n = rank.world->size();
    std::vector<int> members;
    for (int member = n - 1; member >= 0; --member) members.push_back(member);
    backwards = rank.world->subgroup(members, "backwards");
    alone = rank.world->subgroup({rank.world->rank()}, "alone");
    rows.reserve(24);
    for (int round = 0; round < 8; ++round)
      for (Communicator* group : {rank.world.get(), backwards.get(), alone.get()}) {
        rows.emplace_back(rank, std::vector<float>(round % 2 == 0 ? 100 : 30000,
                                                   static_cast<float>(round + group->rank())));
        works.push_back(group->all_reduce(rows.back().tensor, ReduceOp::sum));
      }
  }
  void check(int ranks) const {
    for (std::size_t at = 0; at < rows.size(); ++at) {
      const int members = at % 3 == 2 ? 1 : ranks;
      float expected = 0;
      for (int member = 0; member < members; ++member)
        expected += static_cast<float>(static_cast<int>(at / 3) + member);
      for (const float value : rows[at].read())
        T3D_CHECK(value == expected, "row {}: {} instead of {}", at, value, expected);
    }
  }
};

TEST_CASE("verbs in flight on several groups are waited for in any order", "[comm]") {
  for (const Kind kind : {Kind::staged, Kind::nccl}) {
    for (const int ranks : {1, 3}) {
      if (!enough_gpus(kind, ranks)) continue;
      run_local_ranks(ranks, [&](Communicator& host) {
        GpuRank rank(host, kind, kind == Kind::nccl ? host.rank() : 0);
        Row early(rank, std::vector<float>(7, 1));
        Work first = rank.world->all_reduce(early.tensor, ReduceOp::sum);
        Flights flights(rank);  // makes groups while that one is in flight
        first.wait(*rank.queue);
        T3D_CHECK(early.read()[6] == static_cast<float>(ranks), "{}", early.read()[6]);
        if (host.rank() % 2 == 0) std::reverse(flights.works.begin(), flights.works.end());
        for (std::size_t at = 0; at < flights.works.size(); ++at) {
          Work& work = flights.works[at];
          if (at % 3 == 0)
            work.wait_host();
          else if (at % 3 == 1)
            work.wait(*rank.queue);
          else
            while (!work.done()) std::this_thread::yield();
        }
        flights.check(ranks);
      });
    }
  }
}

TEST_CASE("a verb reads what was queued before it, later work sees its result", "[comm]") {
  for (const Kind kind : {Kind::staged, Kind::nccl}) {
    if (!enough_gpus(kind, 2)) continue;
    run_local_ranks(2, [&](Communicator& host) {
      GpuRank rank(host, kind, kind == Kind::nccl ? host.rank() : 0);
      Row x(rank, std::vector<float>(5000, 0));
      Row copy(rank, std::vector<float>(5000, -1));
      for (int step = 1; step <= 5; ++step) {  // the host never waits in here
        x.write(std::vector<float>(5000, static_cast<float>(step + host.rank())));
        rank.world->all_reduce(x.tensor, ReduceOp::sum).wait(*rank.queue);
        rank.device->copy(copy.tensor.view().data, x.tensor.view().data, x.tensor.view().bytes(),
                          *rank.queue);
        x.write(std::vector<float>(5000, 100));
      }
      T3D_CHECK(copy.read() == std::vector<float>(5000, 11), "{}", copy.read()[0]);

      // After the host has waited, any queue sees it.
      x.write(std::vector<float>(5000, 3));
      rank.world->all_reduce(x.tensor, ReduceOp::sum).wait_host();
      const auto other = rank.device->make_queue();
      std::vector<float> seen(5000);
      rank.device->copy(seen.data(), x.tensor.view().data, x.tensor.view().bytes(), *other);
      other->synchronize();
      T3D_CHECK(seen == std::vector<float>(5000, 6), "{}", seen[0]);
    });
  }
}

TEST_CASE("a wait on the host group carries staged verbs on", "[comm]") {
  run_local_ranks(2, [](Communicator& host) {
    std::int32_t control = 1;
    const TensorView word(&control, DType::i32, 1, 1);
    if (host.rank() == 1) {  // a CPU rank that wants the data first
      std::vector<float> x(100000, 1);
      host.all_reduce({x.data(), DType::f32, 1, 100000}, ReduceOp::sum).wait_host();
      host.all_reduce(word, ReduceOp::sum).wait_host();
      T3D_CHECK(x == std::vector<float>(100000, 3), "{}", x[0]);
    } else {
      GpuRank rank(host, Kind::staged, 0);
      Row x(rank, std::vector<float>(100000, 2));
      Work work = rank.world->all_reduce(x.tensor, ReduceOp::sum);
      host.all_reduce(word, ReduceOp::sum).wait_host();
      work.wait(*rank.queue);
      T3D_CHECK(x.read() == std::vector<float>(100000, 3), "{}", x.read()[0]);
    }
    T3D_CHECK(control == 2, "{}", control);
  });
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

TEST_CASE("staged: a rank that stays away is named, an error on the way abandons", "[comm]") {
  std::atomic<int> over = 0;
  const Error late = error_of(3, [&](Communicator& host) {
    GpuRank rank(host, Kind::staged, 0);
    const auto line = rank.world->subgroup({0, 1, 2}, "k");
    if (host.rank() == 2) {
      while (over < 2) std::this_thread::sleep_for(1ms);
      return;
    }
    if (host.rank() == 0) rank.world->set_watchdog(0.2);
    Row x(rank, std::vector<float>(1000, 1));
    try {
      line->all_reduce(x.tensor, ReduceOp::sum).wait(*rank.queue);
    } catch (const Error&) {
      ++over;
      throw;
    }
  });
  CHECK(late.code() == ExitCode::peer_lost);
  CHECK_THAT(late.what(), test::contains("for all_reduce on axis k"));
  CHECK_THAT(late.what(), test::contains("missing: world rank 2."));

  const Error changed = error_of(2, [](Communicator& host) {
    GpuRank rank(host, Kind::staged, 0);
    Row x(rank, std::vector<float>(100000, 1));
    const Work work = rank.world->all_reduce(x.tensor, ReduceOp::sum);
    if (host.rank() == 1) throw_error(ExitCode::config, "changed my mind");
  });
  CHECK(changed.code() == ExitCode::config);
}

TEST_CASE("nccl: a rank that stays away ends the waits of the others", "[comm]") {
  if (!enough_gpus(Kind::nccl, 3)) return;
  std::atomic<int> over = 0;
  const Error error = error_of(3, [&](Communicator& host) {
    GpuRank rank(host, Kind::nccl, host.rank());
    const auto line = rank.world->subgroup({2, 1, 0}, "k");
    Row x(rank, std::vector<float>(1000, 1));
    line->all_reduce(x.tensor, ReduceOp::sum).wait_host();
    if (host.rank() == 2) {
      while (over < 2) std::this_thread::sleep_for(1ms);
      return;
    }
    rank.world->set_watchdog(0.3);
    std::string first;
    try {
      Work work = line->all_reduce(x.tensor, ReduceOp::sum);
      if (host.rank() == 0) work.wait_host();
      // Who never waits hears it too.
      work.wait(*rank.queue);
      while (true) {
        rank.world->progress();
        rank.world->all_reduce({}, ReduceOp::sum).wait(*rank.queue);
      }
    } catch (const Error& lost) {
      first = lost.what();
      ++over;
    }
    rank.queue->synchronize();  // nothing is left on the GPU
    try {
      rank.world->barrier();  // and it stays failed, in all groups
    } catch (const Error& again) {
      if (again.what() == first) throw;
    }
    throw_error(ExitCode::internal, "rank {} goes on after: {}", host.rank(), first);
  });
  INFO(error.what());
  CHECK(error.code() == ExitCode::peer_lost);
  CHECK_THAT(error.what(), test::contains("s for all_reduce on axis k (operation #"));
  CHECK_THAT(error.what(), test::contains("5332 bytes to send"));
  CHECK_THAT(error.what(), test::contains("all_reduce on k, 5332 bytes sent, finished"));
  CHECK_THAT(error.what(), test::contains("all_reduce on k, 5332 bytes sent, IN FLIGHT"));
}

TEST_CASE("mixed: the limits of waits hold by NCCL too, ranks are those of the world", "[comm]") {
  if (!enough_gpus(Kind::mixed, 3)) return;
  std::atomic<bool> over = false;
  const Error error = error_of(3, [&](Communicator& host) {
    if (host.rank() == 0) {
      (void)host.subgroup({0}, "gpus");
      (void)host.subgroup({0}, "alone");
      return;
    }
    GpuRank rank(host, Kind::mixed, host.rank(), {}, {1, 2});
    rank.world->set_watchdog(10);
    rank.world->set_wait_limit("files", 0.3);
    const auto pair = rank.world->subgroup({1, 2}, "files");
    while (host.rank() == 1 && !over) std::this_thread::sleep_for(1ms);
    if (host.rank() == 1) return;
    Row x(rank, std::vector<float>(1000, 1));
    try {
      pair->all_reduce(x.tensor, ReduceOp::sum).wait_host();
    } catch (const Error&) {
      over = true;
      throw;
    }
  });
  CHECK(error.code() == ExitCode::peer_lost);
  CHECK_THAT(error.what(), test::contains("rank 2 has waited"));
  CHECK_THAT(error.what(), test::contains("s for all_reduce on axis files"));
  CHECK_THAT(error.what(), !test::contains("waited 10"));
}

TEST_CASE("nccl: an error between start and wait abandons the verb without waiting", "[comm]") {
  if (!enough_gpus(Kind::nccl, 2)) return;
  const Error error = error_of(2, [](Communicator& host) {
    GpuRank rank(host, Kind::nccl, host.rank());
    rank.world->set_watchdog(0.3);
    Row x(rank, std::vector<float>(1000, 1));
    Work work;
    if (host.rank() == 1) work = rank.world->all_reduce(x.tensor, ReduceOp::sum);
    throw_error(ExitCode::config, "changed my mind");
  });
  CHECK(error.code() == ExitCode::config);
}

TEST_CASE("nccl: a peer that NCCL has lost is an error of the next wait", "[comm]") {
  if (!enough_gpus(Kind::nccl, 2) || cuda_info(0).name.find("emulated") == std::string::npos)
    return;
  setenv("T3D_EMULATED_NCCL_LOST", "1", 1);
  const Error error = error_of(2, [](Communicator& host) {
    GpuRank rank(host, Kind::nccl, host.rank());
    Row x(rank, std::vector<float>(1000, 1));
    rank.world->broadcast(x.tensor, 0).wait_host();
  });
  unsetenv("T3D_EMULATED_NCCL_LOST");
  CHECK(error.code() == ExitCode::peer_lost);
  CHECK_THAT(error.what(), test::contains("NCCL lost a peer: remote process exited"));
}

TEST_CASE("wrong calls are refused before anything is queued", "[comm]") {
  for (const Kind kind : {Kind::staged, Kind::nccl}) {
    const auto host = make_single_communicator();
    GpuRank rank(*host, kind, 0);
    Communicator& world = *rank.world;
    const Tensor x(*rank.device, DType::f32, 1, 12, MemoryKind::workspace);
    const TensorView view = x;
    const TensorView strided(view.data, DType::f32, 3, 2, 4);
    const std::vector<index_t> counts{12}, two{6, 6};
    CHECK_THROWS_AS(world.all_gather(view, view, two), Error);
    CHECK_THROWS_AS(world.all_gather(view.col_range(0, 5), view, counts), Error);
    CHECK_THROWS_AS(world.all_reduce(strided, ReduceOp::sum), Error);
    CHECK_THROWS_AS(world.all_reduce(view, ReduceOp::bit_or), Error);
    CHECK_THROWS_AS(world.broadcast(view, 1), Error);
    CHECK_THROWS_AS(world.exchange({{1, view, {}}}), Error);
    CHECK_THROWS_AS(world.exchange({{0, view, {}}}), Error);
    CHECK(world.ledger().table().empty());
  }
}

// The largest deviation from the exact sums, in units of what `ranks` roundings may cost.
double ring_error(const std::vector<float>& sums, int ranks, index_t first, double epsilon) {
  double worst = 0;
  for (std::size_t at = 0; at < sums.size(); ++at) {
    double exact = 0, size = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const double value = std::sin(static_cast<double>(first + static_cast<index_t>(at)) + rank);
      exact += value;
      size += std::abs(value);
    }
    worst = std::max(worst, std::abs(static_cast<double>(sums[at]) - exact) /
                                (static_cast<double>(ranks) * epsilon * size));
  }
  return worst;
}

TEST_CASE("nccl: ring sums are right within rounding, uneven ones stay exact", "[comm]") {
  NcclOptions options;
  options.reduction = "ring";
  for (const int ranks : {1, 2, 3, 4}) {
    if (!enough_gpus(Kind::nccl, ranks)) continue;
    run_ranks(
        ranks, [](int) { return Kind::nccl; }, options,
        [&](Communicator& face) {
          const index_t part = 1001, first = part * face.rank();
          std::vector<float> whole;
          for (index_t at = 0; at < part * ranks; ++at)
            whole.push_back(static_cast<float>(std::sin(static_cast<double>(at) + face.rank())));
          const TensorView view(whole.data(), DType::f32, 1, part * ranks);
          std::vector<float> sum(static_cast<std::size_t>(part));
          const std::vector<index_t> counts(static_cast<std::size_t>(ranks), part);
          face.reduce_scatter(view, {sum.data(), DType::f32, 1, part}, counts).wait_host();
          T3D_CHECK(ring_error(sum, ranks, first, 0x1p-23) <= 1, "reduce_scatter");
          face.all_reduce(view, ReduceOp::sum).wait_host();
          T3D_CHECK(ring_error(whole, ranks, 0, 0x1p-23) <= 1, "all_reduce");

          test::check_reduce_scatter(face, DType::f32, DType::f32, test::Shares::uneven, true);
          test::check_reduce_scatter(face, DType::bf16, DType::f32, test::Shares::equal, false);
          test::check_all_reduce(face, DType::f64, ReduceOp::max, 10000);
          test::check_all_gather(face, DType::bf16, test::Shares::large, true);
        });
  }
}

TEST_CASE("nccl: verbs are recorded with the work around them", "[comm]") {
  for (const int ranks : {1, 2, 3}) {
    if (!enough_gpus(Kind::nccl, ranks)) continue;
    run_local_ranks(ranks, [&](Communicator& host) {
      GpuRank rank(host, Kind::nccl, host.rank());
      Row x(rank, std::vector<float>(1003, 0));
      Row whole(rank, std::vector<float>(static_cast<std::size_t>(1003 * ranks), 0));
      const std::vector<index_t> counts(static_cast<std::size_t>(ranks), 1003);
      const TensorView view = x.tensor;
      for (int step = 1; step <= 4; ++step) {
        x.write(std::vector<float>(1003, static_cast<float>(step * (host.rank() + 1))));
        rank.queue->record(0, [&] {
          Work gather = rank.world->all_gather(view, whole.tensor, counts);
          rank.world->progress();
          gather.wait(*rank.queue);
          rank.world->all_reduce(view, ReduceOp::sum).wait(*rank.queue);
        });
        rank.world->progress();
        const auto sum = static_cast<float>(step * ranks * (ranks + 1) / 2);
        T3D_CHECK(x.read() == std::vector<float>(1003, sum), "{} is not {}", x.read()[0], sum);
        const std::vector<float> parts = whole.read();
        for (int from = 0; from < ranks; ++from)
          T3D_CHECK(
              parts[static_cast<std::size_t>(1003 * from)] == static_cast<float>(step * (from + 1)),
              "part {}", from);
      }
    });
  }
}

}  // namespace
}  // namespace t3d
