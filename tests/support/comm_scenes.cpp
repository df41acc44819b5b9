// Cases that need several groups or several operations at a time.
#include <algorithm>
#include <numeric>

#include "support/comm_cases.hpp"

namespace t3d::test {
namespace {

std::vector<int> ranks_with(int size, int parity) {
  std::vector<int> ranks;
  for (int rank = 0; rank < size; ++rank)
    if (rank % 2 == parity) ranks.push_back(rank);
  return ranks;
}

// One all-gather and one all-reduce of `length` numbers in flight, with their expected results.
struct Flight {
  std::vector<float> part, whole, sum;
  std::vector<index_t> counts;
  Work gather, reduce;

  Flight(Communicator& group, index_t length, float salt)
      : part(static_cast<std::size_t>(length), salt + static_cast<float>(group.rank())),
        whole(static_cast<std::size_t>(length * group.size())),
        sum(part),
        counts(static_cast<std::size_t>(group.size()), length) {
    gather = group.all_gather({part.data(), DType::f32, 1, length},
                              {whole.data(), DType::f32, 1, length * group.size()}, counts);
    reduce = group.all_reduce({sum.data(), DType::f32, 1, length}, ReduceOp::sum);
  }
  void finish(Communicator& group, float salt) {
    reduce.wait_host();
    gather.wait_host();
    float expected = 0;
    for (int rank = 0; rank < group.size(); ++rank) expected += salt + static_cast<float>(rank);
    for (const float value : sum) T3D_CHECK(value == expected, "{} instead of {}", value, expected);
    for (std::size_t at = 0; at < whole.size(); ++at) {
      const float rank = static_cast<float>(at / part.size());
      T3D_CHECK(whole[at] == salt + rank, "{} instead of {}", whole[at], salt + rank);
    }
  }
};

}  // namespace

void check_many_in_flight(Communicator& world) {
  const auto half = world.subgroup(ranks_with(world.size(), world.rank() % 2), "half");
  std::vector<int> reversed(static_cast<std::size_t>(world.size()));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  const auto backwards = world.subgroup(reversed, "backwards");
  std::vector<Communicator*> groups{&world, half.get(), backwards.get()};
  // Only within a group must the order be the same on all ranks.
  if (world.rank() % 2 == 1) std::reverse(groups.begin(), groups.end());
  std::vector<std::unique_ptr<Flight>> flights;
  for (int round = 0; round < 8; ++round)
    for (Communicator* group : groups)
      flights.push_back(std::make_unique<Flight>(*group, round % 2 == 0 ? 100 : 30000,
                                                 static_cast<float>(round)));
  world.progress();
  // Newest first on even ranks, oldest first on odd ones.
  std::vector<std::size_t> order(flights.size());
  std::iota(order.begin(), order.end(), 0);
  if (world.rank() % 2 == 0) std::reverse(order.begin(), order.end());
  for (const std::size_t at : order)
    flights[at]->finish(*groups[at % groups.size()], static_cast<float>(at / groups.size()));
}

void check_subgroups(Communicator& world) {
  for (int again = 0; again < 300; ++again) {  // more than there are group numbers
    const auto half = world.subgroup(ranks_with(world.size(), world.rank() % 2), "half");
    T3D_CHECK(half->rank() == world.rank() / 2, "rank {}", half->rank());
    T3D_CHECK(half->axis() == "half", "axis {}", half->axis());
    std::int32_t sum = world.rank();
    half->all_reduce({&sum, DType::i32, 1, 1}, ReduceOp::sum).wait_host();
    const auto members = ranks_with(world.size(), world.rank() % 2);
    T3D_CHECK(sum == std::accumulate(members.begin(), members.end(), 0), "sum {}", sum);
    if (again % 100 != 0) continue;

    std::vector<int> reversed(static_cast<std::size_t>(half->size()));
    std::iota(reversed.rbegin(), reversed.rend(), 0);
    const auto backwards = half->subgroup(reversed, "backwards");
    T3D_CHECK(backwards->rank() == half->size() - 1 - half->rank(), "rank {}", backwards->rank());
    const auto alone = backwards->subgroup({backwards->rank()}, "alone");
    T3D_CHECK(alone->size() == 1 && alone->rank() == 0, "alone");
    check_all_gather(*backwards, DType::f32, Shares::uneven, false);
    check_reduce_scatter(*alone, DType::bf16, DType::f32, Shares::equal, false);
    check_all_reduce(*half, DType::f64, ReduceOp::max, 1000);
  }
}

}  // namespace t3d::test
