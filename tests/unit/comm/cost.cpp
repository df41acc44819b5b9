// The byte formulas in small numbers, and the dry communicator, which counts by them.
#include "comm/cost.hpp"

#include <numeric>

#include "comm/communicator.hpp"
#include "support/catch.hpp"
#include "support/comm_cases.hpp"

namespace t3d {
namespace {

const std::vector<index_t> kCounts{3, 0, 5};

TEST_CASE("bytes of the verbs", "[cost]") {
  CHECK(all_gather_bytes(kCounts, 0, DType::f32) == 2 * 3 * 4);
  CHECK(all_gather_bytes(kCounts, 1, DType::f32) == 0);
  CHECK(reduce_scatter_bytes(kCounts, 0, DType::bf16) == 5 * 2);
  CHECK(reduce_scatter_bytes(kCounts, 1, DType::bf16) == 8 * 2);
  CHECK(broadcast_bytes(7, 4, 2, 2, DType::f64) == 3 * 7 * 8);
  CHECK(broadcast_bytes(7, 4, 1, 2, DType::f64) == 0);
  CHECK(all_reduce_bytes(kSmallAllReduce, 4, 0, DType::f32) == 3 * kSmallAllReduce * 4);
  // 1000 in 3: 334 + 333 + 333; rank 0 sends 666 and then its 334 twice.
  CHECK(all_reduce_bytes(1000, 3, 0, DType::f32) == (666 + 668) * 4);
  CHECK(all_reduce_bytes(1000, 3, 2, DType::f32) == (667 + 666) * 4);
  CHECK(all_reduce_bytes(1000000, 1, 0, DType::f32) == 0);
}

TEST_CASE("the ledger adds up by axis", "[cost]") {
  Ledger ledger;
  ledger.count(Verb::all_gather, "i", 10, 3);
  ledger.count(Verb::reduce_scatter, "i", 5);
  ledger.count(Verb::all_gather, "j", 7);
  ledger.count(Verb::all_gather, "i", 10);
  CHECK(ledger.bytes_on("i") == 25);
  CHECK(ledger.bytes_on("j") == 7);
  CHECK(ledger.bytes_on("k") == 0);
  CHECK(ledger.table().at({Verb::all_gather, "i"}) == Ledger::Entry{20, 3, 2});
  CHECK(ledger.messages() == 3);
  Ledger twice = ledger;
  twice.merge(ledger);
  CHECK(twice.table().at({Verb::all_gather, "i"}) == Ledger::Entry{40, 6, 4});
  CHECK(twice.bytes_on("j") == 14);
  ledger.clear();
  CHECK(ledger.table().empty());
}

TEST_CASE("ledgers are compared over every verb and axis", "[cost]") {
  Ledger counted, predicted;
  counted.count(Verb::all_gather, "i", 6);
  counted.count(Verb::all_gather, "i", 4);
  counted.count(Verb::barrier, "world", 0);
  predicted.count(Verb::all_gather, "i", 10);
  CHECK(difference(counted, predicted).empty());
  // The same bytes on the axis, but of another verb.
  predicted.clear();
  predicted.count(Verb::reduce_scatter, "i", 10);
  CHECK(difference(counted, predicted) ==
        "all_gather on i: 10 bytes counted, 0 predicted; reduce_scatter on i: 0 bytes counted, 10 "
        "predicted");
  // An axis that nobody thought of.
  predicted = counted;
  counted.count(Verb::exchange, "reshape", 1);
  CHECK(difference(counted, predicted) == "exchange on reshape: 1 bytes counted, 0 predicted");
}

TEST_CASE("messages of the verbs", "[cost]") {
  CHECK(all_gather_traffic(kCounts, 0, DType::f32).messages == 2);
  CHECK(all_gather_traffic(kCounts, 1, DType::f32).messages == 0);
  CHECK(reduce_scatter_traffic(kCounts, 0, DType::f32).messages == 1);
  CHECK(reduce_scatter_traffic(kCounts, 1, DType::f32).messages == 2);
  CHECK(all_reduce_traffic(1000, 3, 0, DType::f32).messages == 4);
  CHECK(barrier_traffic(1).messages == 0);
  CHECK(barrier_traffic(17).messages == 5);
  // 17 ranks: rounds at 1, 2, 4, 8 and one block at 16.
  const std::vector<index_t> equal(17, 4);
  CHECK(all_gather_traffic(equal, 3, DType::f32) == Traffic{16 * 16, 5});
  // 16 ranks in 4 rounds of doubling; rank 16 joins rank 0. bf16 travels as fp32.
  CHECK(all_reduce_traffic(10, 17, 16, DType::f32) == Traffic{40, 1});
  CHECK(all_reduce_traffic(10, 17, 0, DType::bf16) == Traffic{5 * 40, 5});
  CHECK(all_reduce_traffic(10, 17, 1, DType::f64) == Traffic{4 * 80, 4});
  CHECK(broadcast_traffic(10, 17, 5, 5, DType::f32) == Traffic{5 * 40, 5});
  CHECK(broadcast_traffic(10, 16, 5, 5, DType::f32) == Traffic{15 * 40, 15});
}

TEST_CASE("a broadcast's tree reaches everybody once", "[cost]") {
  for (const int ranks : {17, 24, 31, 32, 33, 100}) {
    std::vector<int> reached(static_cast<std::size_t>(ranks), 0);
    const int root = ranks / 3;
    for (int rank = 0; rank < ranks; ++rank)
      for (const int child : broadcast_children(ranks, rank, root)) {
        CHECK(broadcast_parent(ranks, child, root) == rank);
        ++reached[static_cast<std::size_t>(child)];
      }
    for (int rank = 0; rank < ranks; ++rank)
      CHECK(reached[static_cast<std::size_t>(rank)] == (rank == root ? 0 : 1));
  }
}

TEST_CASE("a step's control traffic takes few messages at any number of ranks", "[cost]") {
  for (const int ranks : {64, 256, 4096, 65536}) {
    const std::vector<index_t> counts(static_cast<std::size_t>(ranks), 16);  // 64 bytes each
    const int allowed = 4 * rounds_of(ranks);
    for (const int rank : {0, 1, ranks / 2 + 1, ranks - 1}) {
      const auto world = make_dry_communicator(rank, ranks);
      void* const nowhere = reinterpret_cast<void*>(std::uintptr_t{1} << 60);  // NOLINT
      world->all_gather({nowhere, DType::f32, 1, 16}, {nowhere, DType::f32, 1, 16 * ranks}, counts)
          .wait_host();
      CHECK(world->ledger().messages() > 0);
      CHECK(world->ledger().messages() <= allowed);
      CHECK(world->ledger().bytes_on("world") == 64 * (ranks - 1));
    }
  }
}

// The same calls on a real and on a dry group.
Ledger::Table calls_on(Communicator& world, void* memory) {
  world.ledger().clear();
  const int n = world.size();
  std::vector<int> reversed(static_cast<std::size_t>(n));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  const auto group = world.subgroup(reversed, "j");
  const auto counts = test::counts_of(test::Shares::uneven, n);
  const index_t total = std::accumulate(counts.begin(), counts.end(), index_t{0});
  const index_t own = counts[static_cast<std::size_t>(group->rank())];
  const TensorView whole(memory, DType::f32, 1, total);
  const TensorView part(static_cast<std::byte*>(memory) + total * 4, DType::f32, 1, own);
  group->all_gather(part, whole, counts).wait_host();
  group->reduce_scatter(whole, part, counts).wait_host();
  group->all_reduce(whole, ReduceOp::sum).wait_host();
  group->broadcast(whole, n - 1).wait_host();
  const TensorView one(memory, DType::f32, 1, 1);
  const TensorView other(static_cast<std::byte*>(memory) + 64, DType::f32, 1, 1);
  world.exchange({{(world.rank() + 1) % n, one, {}}, {(world.rank() + n - 1) % n, {}, other}})
      .wait_host();
  // Pairwise in any group: parts too long for rounds, and too many numbers for a tree.
  const std::vector<index_t> long_parts(static_cast<std::size_t>(n), 300);
  const TensorView long_whole(memory, DType::f32, 1, 300 * n);
  group->all_gather(long_whole.col_range(300 * group->rank(), 300), long_whole, long_parts)
      .wait_host();
  group->all_reduce(long_whole.col_range(0, 200), ReduceOp::sum).wait_host();
  world.barrier();
  return world.ledger().table();
}

TEST_CASE("a dry group counts what a real one sends, without touching memory", "[cost]") {
  for (const int ranks : {1, 2, 5, 16, 17, 24, 31, 33, 40}) {
    std::vector<Ledger::Table> real(static_cast<std::size_t>(ranks));
    run_local_ranks(ranks, [&](Communicator& world) {
      std::vector<float> memory(12000);
      real[static_cast<std::size_t>(world.rank())] = calls_on(world, memory.data());
    });
    for (int rank = 0; rank < ranks; ++rank) {
      const auto dry = make_dry_communicator(rank, ranks);
      std::vector<float> memory(12000);
      void* const nowhere = reinterpret_cast<void*>(std::uintptr_t{1} << 60);  // NOLINT
      CHECK(calls_on(*dry, ranks == 1 ? memory.data() : nowhere) ==
            real[static_cast<std::size_t>(rank)]);
    }
  }
}

TEST_CASE("one dry rank is a working world", "[cost]") {
  const auto world = make_single_communicator();
  CHECK(world->size() == 1);
  test::check_every_verb(*world);
  test::check_subgroups(*world);
  for (const auto& [key, entry] : world->ledger().table()) CHECK(entry.bytes == 0);
}

}  // namespace
}  // namespace t3d
