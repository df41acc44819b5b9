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
  CHECK(broadcast_bytes(7, 4, true, DType::f64) == 3 * 7 * 8);
  CHECK(broadcast_bytes(7, 4, false, DType::f64) == 0);
  CHECK(all_reduce_bytes(kSmallAllReduce, 4, 0, DType::f32) == 3 * kSmallAllReduce * 4);
  // 1000 in 3: 334 + 333 + 333; rank 0 sends 666 and then its 334 twice.
  CHECK(all_reduce_bytes(1000, 3, 0, DType::f32) == (666 + 668) * 4);
  CHECK(all_reduce_bytes(1000, 3, 2, DType::f32) == (667 + 666) * 4);
  CHECK(all_reduce_bytes(1000000, 1, 0, DType::f32) == 0);
}

TEST_CASE("the ledger adds up by axis", "[cost]") {
  Ledger ledger;
  ledger.count(Verb::all_gather, "i", 10);
  ledger.count(Verb::reduce_scatter, "i", 5);
  ledger.count(Verb::all_gather, "j", 7);
  ledger.count(Verb::all_gather, "i", 10);
  CHECK(ledger.bytes_on("i") == 25);
  CHECK(ledger.bytes_on("j") == 7);
  CHECK(ledger.bytes_on("k") == 0);
  CHECK(ledger.table().at({Verb::all_gather, "i"}) == Ledger::Entry{20, 2});
  ledger.clear();
  CHECK(ledger.table().empty());
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
  world.barrier();
  return world.ledger().table();
}

TEST_CASE("a dry group counts what a real one sends, without touching memory", "[cost]") {
  for (const int ranks : {1, 2, 5}) {
    std::vector<Ledger::Table> real(static_cast<std::size_t>(ranks));
    run_local_ranks(ranks, [&](Communicator& world) {
      std::vector<float> memory(10000);
      real[static_cast<std::size_t>(world.rank())] = calls_on(world, memory.data());
    });
    for (int rank = 0; rank < ranks; ++rank) {
      const auto dry = make_dry_communicator(rank, ranks);
      std::vector<float> memory(10000);
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
