// Main of the MPI tests: the same session on every rank. Rank 0 writes to the screen; the others
// write into memory, and what failing ones have to say is gathered and printed by rank 0
// afterwards. A failure anywhere is a failure of the run.
#include <cstdio>
#include <cstring>
#include <iostream>
#include <sstream>

#include "comm/mpi/mpi_world.hpp"
#include "support/mpi_world.hpp"
#include "support/test_runner.hpp"

namespace t3d::test {
namespace {

constexpr double kWatchdogSeconds = 30;  // below the limit of a test case, so that it speaks first

Communicator* the_world = nullptr;

// Gathers `text` of all ranks (empty: passed) as 32-bit words, the only type that fits. Rank 0
// prints what the others say; true when nobody says anything.
bool report(Communicator& group, const std::string& text) {
  const auto ranks = static_cast<std::size_t>(group.size());
  std::vector<std::int32_t> own((text.size() + 3) / 4);
  if (!text.empty()) std::memcpy(own.data(), text.data(), text.size());

  const auto own_words = static_cast<std::int32_t>(own.size());
  std::vector<std::int32_t> words(ranks);
  const std::vector<index_t> ones(ranks, 1);
  const auto n = static_cast<index_t>(ranks);
  group.all_gather({&own_words, DType::i32, 1, 1}, {words.data(), DType::i32, 1, n}, ones)
      .wait_host();

  const std::vector<index_t> counts(words.begin(), words.end());
  index_t total = 0;
  for (const index_t count : counts) total += count;
  std::vector<std::int32_t> all(static_cast<std::size_t>(total));
  group
      .all_gather({own.data(), DType::i32, 1, own_words}, {all.data(), DType::i32, 1, total},
                  counts)
      .wait_host();

  index_t at = 0;
  for (std::size_t rank = 0; rank < ranks; at += counts[rank++]) {
    if (group.rank() != 0 || rank == 0 || counts[rank] == 0) continue;
    const auto* begin = reinterpret_cast<const char*>(all.data() + at);
    std::printf("---- rank %zu ----\n%.*s\n", rank, static_cast<int>(counts[rank] * 4), begin);
  }
  return total == 0;
}

int run(int argc, char** argv) {
  const auto world_owner = make_mpi_world();
  the_world = world_owner.get();
  world().set_watchdog(kWatchdogSeconds);
  std::vector<int> everyone(static_cast<std::size_t>(world().size()));
  for (int rank = 0; rank < world().size(); ++rank) everyone[static_cast<std::size_t>(rank)] = rank;
  // Own group: its messages cannot be mistaken for those of a test that ended half way.
  const auto report_group = world().subgroup(everyone, "report");

  std::ostringstream memory;
  const bool speaks = world().rank() == 0;
  std::streambuf* const screen = speaks ? nullptr : std::cout.rdbuf(memory.rdbuf());
  const auto say = [&] {
    if (!speaks)
      std::fprintf(stderr, "---- rank %d ----\n%s", world().rank(), memory.str().c_str());
  };
  const int status = run_tests(argc, argv, [&](const std::string& text) {
    say();
    std::fprintf(stderr, "rank %d: %s\n", world().rank(), text.c_str());
    abort_world(1);
  });
  if (!speaks) std::cout.rdbuf(screen);
  try {
    const std::string own = status == 0 ? "" : memory.str() + " ";
    return report(*report_group, own) ? 0 : 1;
  } catch (const std::exception& error) {  // a test has broken the world: each for itself
    say();
    std::fprintf(stderr, "rank %d: %s\n", world().rank(), error.what());
    abort_world(1);
  }
}

}  // namespace

Communicator& world() { return *the_world; }

}  // namespace t3d::test

int main(int argc, char** argv) {
  const t3d::MpiSession session(argc, argv);
  return t3d::test::run(argc, argv);
}
