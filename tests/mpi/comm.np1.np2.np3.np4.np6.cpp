// The collectives over MPI, against their definition and against the in-process back end.
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

}  // namespace
}  // namespace t3d::test
