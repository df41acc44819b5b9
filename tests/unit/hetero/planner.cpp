// Plans of a given shape.
#include "hetero/planner/planner.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.hpp"
#include "core/random.hpp"
#include "hetero/cost/memory.hpp"
#include "support/catch.hpp"
#include "support/planner_case.hpp"

namespace t3d::test {
namespace {

PlanRequest request_of(int ranks, index_t sequences, index_t replicas, const Cuboid& cuboid) {
  PlanRequest request;
  request.recipe = small_recipe(ranks, sequences);
  request.replicas = replicas;
  request.cuboids = {cuboid};
  return request;
}

Plan even_plan(const PlanRequest& request) {
  return build_plan(request.recipe,
                    even_shape(request.recipe, *request.replicas, request.cuboids.front()));
}

double price(const Plan& plan, const Speeds& speeds) { return predict_step(plan, speeds).step; }

/// Calls `visit` with every way to deal `total` to the slabs.
template <class Visit>
void for_all_deals(std::vector<index_t>& counts, std::size_t at, index_t rest, const Visit& visit) {
  if (at + 1 == counts.size()) {
    counts[at] = rest;
    visit(counts);
    return;
  }
  for (counts[at] = 0; counts[at] <= rest; ++counts[at])
    for_all_deals(counts, at + 1, rest - counts[at], visit);
}

/// The least price over all placements and all whole numbers of sequences, features even.
double enumerated(const PlanRequest& request, const Speeds& speeds) {
  PlanShape shape = even_shape(request.recipe, *request.replicas, request.cuboids.front());
  std::vector<int> order(speeds.ranks.size());
  std::iota(order.begin(), order.end(), 0);
  const auto& [p_, q, r] = request.cuboids.front();
  const std::ptrdiff_t slots = *request.replicas * p_ * q * r;
  const auto p = static_cast<std::size_t>(request.cuboids.front()[0]);
  double best = std::numeric_limits<double>::infinity();
  do {
    shape.place.assign(order.begin(), order.begin() + slots);
    std::vector<index_t> counts(shape.replicas.size() * p);
    for_all_deals(counts, 0, request.recipe.sequences, [&](const std::vector<index_t>& dealt) {
      for (std::size_t d = 0; d < shape.replicas.size(); ++d) {
        const auto first = dealt.begin() + static_cast<std::ptrdiff_t>(d * p);
        const auto last = first + static_cast<std::ptrdiff_t>(p);
        shape.replicas[d].sequences = std::accumulate(first, last, index_t{0});
        shape.replicas[d].token_speeds.assign(first, last);
        if (shape.replicas[d].sequences == 0) shape.replicas[d].token_speeds.clear();
      }
      best = std::min(best, price(build_plan(request.recipe, shape), speeds));
    });
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

}  // namespace

TEST_CASE("equal ranks keep the even plan") {
  for (const Cuboid& cuboid : {Cuboid{4, 2, 1}, Cuboid{2, 2, 2}, Cuboid{1, 1, 3}}) {
    const PlanRequest request = request_of(9, 12, 1, cuboid);
    const PlanChoice choice =
        plan_shape(request, speeds_of({1, 1.01, 0.99, 1, 1.02, 1, 1, 0.98, 1}));
    CHECK(choice.plan == even_plan(request));
    CHECK(choice.plan.place.empty());
    CHECK(choice.why.size() == 1);
  }
  const PlanRequest replicas = request_of(8, 13, 4, {2, 1, 1});
  CHECK(plan_shape(replicas, speeds_of(std::vector<double>(8, 3.0))).plan == even_plan(replicas));
}

TEST_CASE("sequences follow the speed of slabs, over all replicas at once") {
  const PlanRequest request = request_of(4, 22, 2, {2, 1, 1});
  const Speeds speeds = speeds_of({1, 0.25, 0.5, 1});
  const PlanChoice choice = plan_shape(request, speeds);
  CHECK(choice.plan.place == std::vector<int>{0, 3, 2, 1});
  CHECK(slab_sequences(choice.plan) == std::vector<index_t>{8, 8, 4, 2});
  CHECK(choice.predicted.step < 0.45 * price(even_plan(request), speeds));
  CHECK(choice.gap < 0.05);
  CHECK(choice.gap >= 0);
}

TEST_CASE("slow ranks share a slab, and nodes stay together where links between them are slow") {
  const PlanRequest request = request_of(8, 24, 1, {4, 2, 1});
  Speeds speeds = speeds_of({1, 0.5, 1, 0.5, 1, 0.5, 1, 0.5});
  CHECK(plan_shape(request, speeds).plan.place == std::vector<int>{0, 2, 4, 6, 1, 3, 5, 7});
  // Pairs of unlike ranks on a node each: apart they compute faster, together they speak faster.
  for (std::size_t rank = 0; rank < 8; ++rank) speeds.ranks[rank].node = std::to_string(rank / 2);
  speeds.between = {1e-3, 1e-7};
  CHECK(plan_shape(request, speeds).plan.place.empty());
}

TEST_CASE("whole matrices go where they are computed fast") {
  PlanRequest request = request_of(3, 24, 1, {3, 1, 1});
  const Speeds speeds = speeds_of({0.25, 1, 1});
  CHECK(plan_shape(request, speeds).plan.replicas[0].whole.empty());
  request.recipe.base.optimizer = OptimizerKind::muon;
  const Plan plan = plan_shape(request, speeds).plan;
  CHECK(plan.place == std::vector<int>{1, 2, 0});
  CHECK(plan.replicas[0].whole == std::vector<index_t>{100, 100, 25});
  // 16 matrices, in ninths.
  Plan even = plan;
  even.replicas[0].whole.clear();
  const double gained = price(even, speeds) - price(plan, speeds);
  const double whole = speeds.ranks[0].seconds(WorkClass::whole, step_work(even, {0, 2, 0, 0}));
  CHECK(gained > 0.5 * whole);
  // Slow in this class only, or so little that it does not count.
  Speeds one_class = speeds_of({1, 1, 1});
  one_class.ranks[1].curve(WorkClass::whole) = TimeCurve::of_rate(2e9);
  CHECK(plan_shape(request, one_class).plan.replicas[0].whole == std::vector<index_t>{100, 100, 5});
  CHECK(plan_shape(request, speeds_of({1, 0.97, 1})).plan == even_plan(request));
}

TEST_CASE("where slabs are few, features are cut by speed") {
  const PlanRequest request = request_of(4, 8, 1, {1, 2, 2});
  const Speeds speeds = speeds_of({1, 1, 1, 0.25});
  const PlanChoice choice = plan_shape(request, speeds);
  const double even = price(even_plan(request), speeds);
  CHECK(choice.predicted.step < 0.55 * even);
  CHECK(choice.plan.replicas[0].ffn.size(1) < choice.plan.replicas[0].ffn.size(0));
}

TEST_CASE("the issue's machine: factors 4, 8, 16 on 3, 3 and 2 ranks of one 2x2x2") {
  const PlanRequest request = request_of(8, 32, 1, {2, 2, 2});
  const Speeds speeds = speeds_of({1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25});
  const double even = price(even_plan(request), speeds);
  CHECK(even / plan_shape(request, speeds).predicted.step > 1.8);
}

TEST_CASE("ranks of speed 0 get no place, and too few ranks are refused") {
  const PlanRequest request = request_of(4, 6, 1, {3, 1, 1});
  CHECK(plan_shape(request, speeds_of({1, 0, 1, 1})).plan.place == std::vector<int>{0, 2, 3});
  CHECK(plan_shape(request, speeds_of({0.5, 1, 1, 1})).plan.place == std::vector<int>{1, 2, 3});
  CHECK_THROWS_WITH(plan_shape(request, speeds_of({1, 0, 0, 1})),
                    Catch::Contains("needs 3 ranks, and 2 of 4"));
  CHECK_THROWS_WITH(plan_shape(request, speeds_of({1, 1})), Catch::Contains("2 ranks"));
  Speeds lacking = speeds_of({1, 1, 0, 1});
  lacking.ranks[1].curve(WorkClass::attention) = {};
  CHECK_THROWS_WITH(plan_shape(request, lacking),
                    Catch::Contains("2 of 4 have a speed for all of their work: rank 1 has none "
                                    "for attention"));
}

TEST_CASE("places that the user fixed stay, and units are dealt whole") {
  PlanRequest request = request_of(3, 20, 1, {3, 1, 1});
  request.place = {2, 0, 1};
  request.unit = 4;
  const PlanChoice choice = plan_shape(request, speeds_of({1, 0.5, 0.5}));
  CHECK(choice.plan.place == request.place);
  CHECK(slab_sequences(choice.plan) == std::vector<index_t>{4, 12, 4});
  request.unit = 3;
  CHECK_THROWS_WITH(plan_shape(request, speeds_of({1, 0.5, 0.5})), Catch::Contains("units of 3"));
}

TEST_CASE("memory: storage moves first, then sequences, then it is refused with the arithmetic") {
  PlanRequest request = request_of(4, 16, 1, {4, 1, 1});
  Speeds speeds = speeds_of({1, 1, 1, 1});
  const index_t even = memory_cost(even_plan(request), {0, 3, 0, 0}).tensors_peak;
  const index_t messages = memory_cost(even_plan(request), {0, 3, 0, 0}).messages;
  for (RankSpeed& rank : speeds.ranks) rank.free_bytes = 2 * even;
  CHECK(plan_shape(request, speeds).plan == even_plan(request));
  const auto fits = [&](const Plan& plan) {
    for (int rank = 0; rank < 4; ++rank) {
      const MemoryCost cost = memory_cost(plan, plan.mesh().coord_of(rank));
      if (cost.tensors_peak + cost.messages >
          speeds.ranks[static_cast<std::size_t>(rank)].free_bytes)
        return false;
    }
    return true;
  };
  speeds.ranks[3].free_bytes = even + messages - (index_t{1} << 20);
  const Plan moved = plan_shape(request, speeds).plan;
  CHECK(fits(moved));
  CHECK(slab_sequences(moved) == std::vector<index_t>{4, 4, 4, 4});
  CHECK(moved.replicas[0].storage.size(3) < moved.replicas[0].storage.size(0));
  speeds.ranks[3].free_bytes = even * 6 / 10;
  const Plan fewer = plan_shape(request, speeds).plan;
  CHECK(fits(fewer));
  CHECK(slab_sequences(fewer)[3] < 4);
  for (RankSpeed& rank : speeds.ranks) rank.free_bytes = even / 4;
  CHECK_THROWS_WITH(plan_shape(request, speeds),
                    Catch::Contains("does not fit into memory") && Catch::Contains("needs") &&
                        Catch::Contains("weights") && Catch::Contains("and has"));
}

TEST_CASE("memory: every room above the least is met, however slow its rank") {
  PlanRequest request = request_of(2, 8, 1, {2, 1, 1});
  request.recipe.base.model.hidden = 256;
  request.recipe.base.model.ffn = 1024;
  PlanShape shape;
  shape.replicas.push_back({{2, 1, 1}, 8, {1, 0}, {}, {}, {}, {}, {1, 0}, {}});
  const auto needed = [](const Plan& plan) {  // by rank 1
    return needed_bytes(memory_cost(plan, plan.mesh().coord_of(*plan.active_rank(1))), false);
  };
  const index_t least = needed(build_plan(request.recipe, shape)),
                even = needed(even_plan(request));
  REQUIRE(even > least + least / 10);
  for (const double speed : {0.1, 1.0, 10.0})
    for (int part = 1; part <= 8; ++part) {
      Speeds speeds = speeds_of({1, speed});
      speeds.ranks[0].free_bytes = 10 * even;
      speeds.ranks[1].free_bytes = least + (even - least) * part / 8;
      INFO("speed " << speed << ", room " << speeds.ranks[1].free_bytes << " of " << even);
      CHECK(needed(plan_shape(request, speeds).plan) <= speeds.ranks[1].free_bytes);
    }
  // Too little everywhere is told with the arithmetic, however the search ends.
  for (const double speed : {0.1, 1.0, 10.0}) {
    Speeds speeds = speeds_of({1, speed});
    for (RankSpeed& rank : speeds.ranks) rank.free_bytes = least;
    CHECK_THROWS_WITH(plan_shape(request, speeds),
                      Catch::Contains("needs") && Catch::Contains("and has"));
  }
}

TEST_CASE("memory: what fits into little room fits into more") {
  for (const double factor : {0.1, 0.3, 1.0, 2.0}) {
    PlanRequest request = request_of(2, 8, 1, {2, 1, 1});
    ModelConfig& model = request.recipe.base.model;
    model.hidden = 192;
    model.heads = model.kv_heads = 4;
    model.ffn = 768;
    model.vocab = 256;
    model.context = 32;
    Speeds speeds = speeds_of({1, factor});
    const MemoryCost even = memory_cost(even_plan(request), {0, 1, 0, 0});
    const index_t usual = even.tensors_peak + even.messages;
    speeds.ranks[0].free_bytes = usual * 177 / 100;
    bool fits = false;
    for (index_t permille = 400; permille <= 1001; permille += 7) {
      speeds.ranks[1].free_bytes = usual * permille / 1000;
      INFO("factor " << factor << ", " << permille << " permille of what an even plan needs");
      try {
        (void)plan_shape(request, speeds);
        fits = true;
      } catch (const Error&) {
        CHECK_FALSE(fits);
      }
    }
    CHECK(fits);
  }
}

TEST_CASE("replicas whose cuboids are written one by one may get equal mixtures of ranks") {
  PlanRequest request = request_of(4, 16, 2, {2, 1, 1});
  request.recipe.micro = 2;
  const Speeds speeds = speeds_of({1, 1, 0.3, 0.3});
  const auto tried = [&] {
    const std::vector<std::string> why = plan_shape(request, speeds).why;
    return std::any_of(why.begin(), why.end(), [](const std::string& line) {
      return line.find("replicas alike") != std::string::npos;
    });
  };
  CHECK(tried());
  request.cuboids = {{2, 1, 1}, {2, 1, 1}};
  CHECK(tried());
  request.cuboids = {{3, 1, 1}, {1, 1, 1}};
  CHECK_FALSE(tried());
}

TEST_CASE("within 1 % of the best of all placements and deals") {
  constexpr int kCases = 12;
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const std::array<Cuboid, 3> cuboids{Cuboid{4, 1, 1}, Cuboid{2, 2, 1}, Cuboid{2, 1, 1}};
    const Cuboid& cuboid = cuboids[seed % 3];
    PlanRequest request = request_of(4, 7, seed % 3 == 2 ? 2 : 1, cuboid);
    std::vector<double> factors;
    for (index_t rank = 0; rank < 4; ++rank)
      factors.push_back(0.25 + 0.75 * double(random_uniform({seed, 0}, rank)));
    const Speeds speeds = speeds_of(factors);
    INFO("case " << seed);
    CHECK(plan_shape(request, speeds).predicted.step <= 1.01 * enumerated(request, speeds));
  }
}

namespace {

/// Every mesh of one cuboid with up to `ranks` ranks.
std::vector<std::pair<index_t, Cuboid>> all_meshes(index_t ranks) {
  std::vector<std::pair<index_t, Cuboid>> all;
  for (index_t d = 1; d <= ranks; ++d)
    for (index_t p = 1; d * p <= ranks; ++p)
      for (index_t q = 1; d * p * q <= ranks; ++q)
        for (index_t r = 1; d * p * q * r <= ranks; ++r) all.push_back({d, {p, q, r}});
  return all;
}

}  // namespace

TEST_CASE("the mesh: within 2 % of the best of all meshes, placements and deals") {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    PlanRequest request = request_of(4, 6, 1, {});
    request.replicas.reset();
    request.cuboids.clear();
    std::vector<double> factors;
    for (index_t rank = 0; rank < 4; ++rank)
      factors.push_back(0.1 + 0.9 * double(random_uniform({seed, 1}, rank)));
    Speeds speeds = speeds_of(factors);
    if (seed % 2 == 1) speeds.inside = {1e-5, 1e-9};
    double best = std::numeric_limits<double>::infinity();
    for (const auto& [d, cuboid] : all_meshes(4)) {
      PlanRequest fixed = request;
      fixed.replicas = d;
      fixed.cuboids = {cuboid};
      best = std::min(best, enumerated(fixed, speeds));
    }
    const PlanChoice choice = plan_job(request, speeds);
    INFO("case " << seed << ": " << choice.plan.mesh().describe() << " " << choice.why.front());
    CHECK(choice.predicted.step <= 1.02 * best);
    CHECK(plan_job(request, speeds).plan == choice.plan);
  }
}

TEST_CASE("of meshes that are equally fast the simplest, though another is faster by a little") {
  PlanRequest request;
  request.recipe = small_recipe(8, 12);
  Speeds speeds = speeds_of(std::vector<double>(8, 1.0));
  speeds.inside.alpha_seconds = 1e-8;  // seven messages instead of one, of a millionth of the step
  const PlanChoice choice = plan_job(request, speeds);
  CHECK(choice.plan.mesh().describe() == "1 x 8 x 1");
  CHECK_THAT(choice.why[1], Catch::Contains("2 x 4 x 1 (-0.0 %)"));
}

TEST_CASE("memory decides the mesh: slabs of several ranks do not fit, single ranks do") {
  PlanRequest request;
  request.recipe = small_recipe(64, 256);
  request.recipe.base.model.context = 512;
  std::vector<double> factors;
  for (index_t rank = 0; rank < 64; ++rank)
    factors.push_back(0.25 + 0.75 * double(random_uniform({0, 0}, rank)));
  Speeds speeds = speeds_of(factors);
  const PlanChoice unlimited = plan_job(request, speeds);
  double needed = 0;
  for (int rank = 0; rank < 64; ++rank)
    needed += double(
        needed_bytes(memory_cost(unlimited.plan, unlimited.plan.mesh().coord_of(rank)), false));
  for (index_t rank = 0; rank < 64; ++rank)
    speeds.ranks[static_cast<std::size_t>(rank)].free_bytes =
        index_t(1.3 * needed / 64 * (0.25 + 1.5 * double(random_uniform({0, 1}, rank))));
  const PlanChoice choice = plan_job(request, speeds);
  for (int number = 0; number < choice.plan.mesh().ranks(); ++number) {
    const int rank =
        choice.plan.place.empty() ? number : choice.plan.active()[static_cast<std::size_t>(number)];
    CHECK(needed_bytes(memory_cost(choice.plan, choice.plan.mesh().coord_of(number)), false) <=
          speeds.ranks[static_cast<std::size_t>(rank)].free_bytes);
  }
  INFO(choice.plan.mesh().describe() << " " << choice.why.front());
  CHECK(choice.predicted.efficiency() > 0.65);  // no plan fits whose slabs have several ranks
  CHECK(plan_job(request, speeds).plan == choice.plan);
}

TEST_CASE("the mesh follows links, memory, sequences, and what is fixed") {
  PlanRequest request;
  request.recipe = small_recipe(8, 16);
  Speeds speeds = speeds_of(std::vector<double>(8, 1.0));
  // All equally fast: the simplest.
  CHECK(plan_job(request, speeds).plan.mesh().describe() == "8 x 1 x 1");
  PlanRequest wide = request;
  wide.recipe.base.model.hidden = 4096;
  wide.recipe.base.model.layers = 32;
  wide.recipe.base.model.context = 2048;
  CHECK(plan_job(wide, speeds).plan.mesh().describe() == "8 x 1 x 1");
  request.replicas = 2;
  CHECK(plan_job(request, speeds).plan.mesh().describe() == "2 x (4 x 1 x 1)");
  request.replicas.reset();
  request.cuboids = {{2, 2, 1}};
  CHECK(plan_job(request, speeds).plan.mesh().describe() == "2 x (2 x 2 x 1)");
  request.cuboids.clear();
  // Two sequences for eight ranks: features are cut too.
  request.recipe.sequences = 2;
  const Plan few = plan_job(request, speeds).plan;
  CHECK(few.mesh().ranks() == 8);
  CHECK(std::ssize(few.replicas) * few.replicas[0].cuboid[0] <= 2);
  // One rank so slow that the others are faster without it.
  request.recipe.sequences = 14;
  speeds.ranks[2] = rank_speed(0.02);
  const PlanChoice idle = plan_job(request, speeds);
  const std::vector<int> used = idle.plan.active();
  CHECK(std::find(used.begin(), used.end(), 2) == used.end());
  CHECK(idle.why.size() > 4);
  request.replicas = 1;
  CHECK(plan_job(request, speeds).plan.mesh().describe() == "7 x 1 x 1");
  for (RankSpeed& rank : speeds.ranks) rank.free_bytes = 1 << 20;
  CHECK_THROWS_WITH(plan_job(request, speeds),
                    Catch::Contains("no mesh of 8 ranks is possible") && Catch::Contains("memory"));
}

}  // namespace t3d::test
