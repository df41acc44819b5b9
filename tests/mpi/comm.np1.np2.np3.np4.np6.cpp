// The collectives over MPI, against their definition and against the in-process back end.
#include <sched.h>

#include <numeric>

#include "comm/mpi/mpi_world.hpp"
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

// The probe takes CPU time of ranks that share cores, and wall time of all others: else the load of
// other users would be in no time of theirs.
TEST_CASE("ranks that are bound to a core each share none, ranks bound to one core do", "[comm]") {
  const cpu_set_t before = affinity_mask();
  std::vector<std::size_t> cores;
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &before)) cores.push_back(core);
  if (world().size() < 2 || std::ssize(cores) < world().size()) return;
  for (const bool apart : {true, false}) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cores[apart ? static_cast<std::size_t>(world().rank()) : 0], &one);
    REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
    const auto bound = make_mpi_world();
    CHECK(crowded_ranks(*bound) ==
          std::vector<bool>(static_cast<std::size_t>(world().size()), !apart));
  }
  REQUIRE(sched_setaffinity(0, sizeof before, &before) == 0);
}

}  // namespace
}  // namespace t3d::test
