// The collectives over MPI, against their definition and against the in-process back end.
#include <numeric>

#include "comm/placement.hpp"
#include "support/catch.hpp"
#include "support/comm_cases.hpp"
#include "support/mpi_world.hpp"

namespace t3d::test {
namespace {

TEST_CASE("every verb computes its definition, counted as predicted, as among threads", "[comm]") {
  const Digest digest = check_every_verb(world());
  std::vector<Digest> among_threads(static_cast<std::size_t>(world().size()));
  run_local_ranks(world().size(), [&](Communicator& group) {
    among_threads[static_cast<std::size_t>(group.rank())] = check_every_verb(group);
  });
  CHECK(digest == among_threads[static_cast<std::size_t>(world().rank())]);
  CHECK(check_every_verb(world()) == digest);
}

TEST_CASE("many operations may be in flight on several groups", "[comm]") {
  check_many_in_flight(world());
}

TEST_CASE("subgroups can be made, nested and dropped", "[comm]") { check_subgroups(world()); }

// mpirun starts all of them here. Groups know it as well as the world does.
TEST_CASE("ranks that share memory are on one node", "[comm]") {
  const std::vector<int> here(static_cast<std::size_t>(world().size()), 0);
  CHECK(node_of_ranks(world()) == here);
  std::vector<int> reversed(here.size());
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  CHECK(node_of_ranks(*world().subgroup(reversed, "backwards")) == here);
  if (world().rank() == 0)
    run_local_ranks(3, [](Communicator& threads) {
      T3D_CHECK(node_of_ranks(threads) == std::vector<int>(3, 0), "threads of one process");
    });
}

}  // namespace
}  // namespace t3d::test
