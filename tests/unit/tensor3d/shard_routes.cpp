// Who sends which elements to whom (tensor3d/shard_routes.hpp, refined_routes.hpp) where there are
// many ranks: the tables follow the ranks that meet, not all there are.
#include "tensor3d/shard_routes.hpp"

#include <chrono>

#include "config/presets.hpp"
#include "hetero/cost/memory.hpp"
#include "support/catch.hpp"
#include "support/plan_rig.hpp"
#include "tensor3d/one_bucket.hpp"
#include "tensor3d/refined_routes.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

constexpr index_t kMostBytes = index_t{64} << 20;
constexpr double kMostSeconds = 2;

class Stopwatch {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// llama2-7b on these cuboids, a sequence for each replica.
Plan llama_plan(const std::vector<Cuboid>& cuboids) {
  Config config = gpt_input();
  config.model = find_preset("llama2-7b")->model;
  config.batch.sequences = 4096;
  return plan_of_cuboids(config, cuboids);
}

std::vector<Cuboid> times(std::size_t count, const Cuboid& cuboid) {
  return std::vector<Cuboid>(count, cuboid);
}

std::vector<Cuboid> halves(std::size_t replicas, const Cuboid& first, const Cuboid& second) {
  std::vector<Cuboid> all = times(replicas / 2, first);
  all.resize(replicas, second);
  return all;
}

/// Elements by peer; what stays on the rank included.
struct Moved {
  std::map<int, index_t> sent, received;
};

/// All buckets of weights and of two kinds of state, as a reshape goes through them.
Moved walk(ShardRoutes& routes, const std::vector<BucketTable>& buckets) {
  Moved moved;
  for (int kind = 0; kind < 3; ++kind)
    for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
      std::vector<Strip> all;
      for (std::size_t entry = 0; entry < buckets[bucket].entries.size(); ++entry)
        all.push_back(
            {entry,
             {0, 0, buckets[bucket].entries[entry].rows, buckets[bucket].entries[entry].cols}});
      routes.for_each_received(bucket, all, {}, [&](int sender, const RoutePiece& piece) {
        moved.received[sender] += piece.count();
      });
      routes.for_each_sent(bucket, all, {}, [&](int receiver, const RoutePiece& piece) {
        moved.sent[receiver] += piece.count();
      });
    }
  return moved;
}

/// Of one rank: it receives all of its new shard, as its peers send it, within the bounds.
void check_change(const Plan& before, const Plan& after, int rank) {
  const std::vector<BucketTable> buckets = whole_buckets(after.model);
  const Stopwatch watch;
  ShardRoutes routes(before, after, rank);
  const Moved moved = walk(routes, buckets);
  const double seconds = watch.seconds();
  INFO(before.mesh().describe().substr(0, 40)
       << " -> " << after.mesh().describe().substr(0, 40) << " rank " << rank << ": " << seconds
       << " s, " << routes.table_bytes() << " bytes");
  index_t received = 0;
  for (const auto& [sender, count] : moved.received) received += count;
  CHECK(received == 3 * parameters_at_rest(after, after.mesh().coord_of(rank)));
  REQUIRE(!moved.received.empty());
  const auto& [sender, count] = *moved.received.rbegin();
  ShardRoutes others(before, after, sender);
  CHECK(walk(others, buckets).sent.at(rank) == count);
  CHECK(routes.table_bytes() <= kMostBytes);
  CHECK(seconds < kMostSeconds);
}

void check_unlike(const Plan& plan, int rank) {
  const Stopwatch watch;
  const RefinedRoutes routes = refined_routes(plan, rank);
  const double seconds = watch.seconds();
  index_t passed = 0;
  for (const auto& bucket : routes)
    for (const auto& [owner, route] : bucket->owners) passed += route.count;
  INFO(plan.ranks << " ranks, rank " << rank << ": " << seconds << " s, " << table_bytes(routes)
                  << " bytes");
  const Coord coord = plan.mesh().coord_of(rank);
  CHECK(passed == parameters_at_rest(plan, coord));
  CHECK(table_bytes(routes) <= kMostBytes);
  CHECK(seconds < kMostSeconds);
  // The forecast knows of them.
  CHECK(memory_cost(plan, coord).tables == table_bytes(routes));
}

}  // namespace

TEST_CASE("one bucket of a rank is what all of its buckets have at that place") {
  for (Config config : {gpt_input(), llama_input(), qwen_input(), lora_input()}) {
    const Plan plan = plan_of(config, Grid{2, 2, 2, {2, 1}, {}, {}});
    const ModelShape shape(plan.model, plan.replica(0));
    for (int rank = 0; rank < 8; ++rank) {
      const Coord coord = plan.mesh().coord_of(rank);
      const auto all = parameter_buckets(shape, plan.mesh(), coord);
      for (std::size_t number = 0; number < all.size(); ++number) {
        const BucketTable one = parameter_bucket(shape, plan.mesh(), coord, number);
        REQUIRE(one.name == all[number].name);
        REQUIRE(one.group == all[number].group);
        REQUIRE(boxes_of(one) == boxes_of(all[number]));
        REQUIRE(boxes_of(all[bucket_cut_like(plan.model, number)]) == boxes_of(one));
      }
    }
  }
}

TEST_CASE("a change of plan at 4,096 and 65,536 ranks: tables of the ranks that meet") {
  const Plan narrow = llama_plan({{4, 32, 32}}), deep = llama_plan({{16, 16, 16}});
  const Plan many = llama_plan(times(256, {2, 4, 2})),
             mixed = llama_plan(halves(256, {2, 4, 2}, {1, 2, 8}));
  for (const int rank : {0, 1234, 4095}) {
    check_change(narrow, deep, rank);
    check_change(deep, many, rank);
    check_change(many, mixed, rank);
  }
  const Plan wide = llama_plan({{64, 32, 32}}), other = llama_plan({{32, 16, 128}});
  const Plan most = llama_plan(times(4096, {2, 4, 2})), least = llama_plan(times(16, {16, 16, 16}));
  for (const int rank : {0, 40000}) {
    check_change(wide, other, rank);
    check_change(most, least, rank);
    check_change(least, most, rank);
  }
}

TEST_CASE("unlike replicas at 4,096 and 65,536 ranks: tables of the ranks that meet") {
  check_unlike(llama_plan(halves(256, {2, 4, 2}, {1, 2, 8})), 77);
  check_unlike(llama_plan(halves(4, {16, 8, 8}, {4, 16, 16})), 4000);
  check_unlike(llama_plan(halves(4096, {2, 4, 2}, {1, 2, 8})), 65000);
  check_unlike(llama_plan(halves(16, {16, 16, 16}, {4, 32, 32})), 33000);
}
