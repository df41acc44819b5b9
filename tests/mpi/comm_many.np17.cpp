// Groups of more than 16 ranks over MPI: the same bits as among threads.
#include "support/catch.hpp"
#include "support/comm_cases.hpp"
#include "support/mpi_world.hpp"

namespace t3d::test {
namespace {

TEST_CASE("small verbs of many ranks are those among threads, to the last bit", "[comm]") {
  const Digest digest = check_small_verbs(world());
  CHECK(digest == check_small_verbs(world()));
  std::vector<Digest> digests(static_cast<std::size_t>(world().size()));
  const std::vector<index_t> counts(digests.size(), 2);
  world()
      .all_gather({&digest, DType::i32, 1, 2}, {digests.data(), DType::i32, 1, 2 * world().size()},
                  counts)
      .wait_host();
  if (world().rank() != 0) return;
  run_local_ranks(world().size(), [&](Communicator& group) {
    const Digest among_threads = check_small_verbs(group);
    T3D_CHECK(among_threads == digests[static_cast<std::size_t>(group.rank())], "rank {}",
              group.rank());
  });
}

}  // namespace
}  // namespace t3d::test
