// Replicas of different cuboids: the arithmetic of the common refinement, aggregation against the
// dense oracle, and training that does not notice.
#include "run/rank_plan.hpp"
#include "support/aggregation_rig.hpp"
#include "support/training.hpp"
#include "tensor3d/refinement.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

// A tensor [rows, cols] cut flat, row by row, among ranks first, first + 1, ...: rows' tails, whole
// rows and rows' heads, as shares have them.
std::vector<HeldBox> flat_cut(index_t rows, index_t cols, int first, index_t ranks) {
  const Partition shares = Partition::even("shares", rows * cols, ranks);
  std::vector<HeldBox> boxes;
  for (index_t part = 0; part < ranks; ++part)
    for (index_t at = shares.begin(part); at < shares.end(part);) {
      const index_t row = at / cols, col = at % cols, left = shares.end(part) - at;
      const index_t whole = col == 0 ? left / cols : 0;
      const Box box =
          whole > 0 ? Box{row, 0, whole, cols} : Box{row, col, 1, std::min(cols - col, left)};
      boxes.push_back({first + static_cast<int>(part), box});
      at += box.count();
    }
  return boxes;
}

// Cut into row by column blocks.
std::vector<HeldBox> block_cut(index_t rows, index_t cols, int first, index_t down,
                               index_t across) {
  const Partition r = Partition::even("rows", rows, down),
                  c = Partition::even("cols", cols, across);
  std::vector<HeldBox> boxes;
  for (index_t i = 0; i < down; ++i)
    for (index_t j = 0; j < across; ++j)
      boxes.push_back({first + static_cast<int>(i * across + j),
                       {r.begin(i), c.begin(j), r.size(i), c.size(j)}});
  return boxes;
}

bool contains_element(const Box& box, index_t row, index_t col) {
  return row >= box.row0 && row < box.row0 + box.rows && col >= box.col0 &&
         col < box.col0 + box.cols;
}

int holder_of(const std::vector<HeldBox>& boxes, index_t row, index_t col) {
  for (const auto& [rank, box] : boxes)
    if (contains_element(box, row, col)) return rank;
  return -1;
}

Case different(const std::vector<Cuboid>& cuboids, index_t per_replica = 1) {
  Case c = adasum_case({}, std::ssize(cuboids), per_replica);
  c.cuboids = cuboids;
  return c;
}

const std::vector<std::vector<Cuboid>> kMeshes{
    {{2, 2, 2}, {4, 2, 1}},
    {{1, 1, 1}, {2, 1, 2}, {1, 3, 1}},
    {{3, 1, 2}, {1, 1, 1}},
    {{1, 1, 2}, {1, 4, 1}, {1, 1, 1}, {1, 1, 2}, {5, 1, 1}}};

}  // namespace

TEST_CASE("the common refinement gives every element one owner, known to all its holders") {
  for (const auto& [rows, cols] : {std::pair<index_t, index_t>{1, 50}, {13, 7}, {40, 3}, {2, 1}}) {
    const std::vector<std::vector<HeldBox>> boxes{
        flat_cut(rows, cols, 0, 3), block_cut(rows, cols, 3, 2, 2), flat_cut(rows, cols, 7, 1)};
    std::vector<std::vector<CellPart>> parts;
    for (int rank = 0; rank < 8; ++rank)
      parts.push_back(refine(boxes, rank, rank < 3 ? 0 : rank < 7 ? 1 : 2));
    index_t owned = 0;
    for (int rank = 0; rank < 8; ++rank)
      for (const CellPart& part : parts[static_cast<std::size_t>(rank)]) {
        REQUIRE(std::count(part.holders->begin(), part.holders->end(), part.owner) == 1);
        if (part.owner == rank) owned += part.box.count();
        for (std::size_t d = 0; d < boxes.size(); ++d) {
          REQUIRE((*part.holders)[d] == holder_of(boxes[d], part.box.row0, part.box.col0));
          REQUIRE((*part.holders)[d] == holder_of(boxes[d], part.box.row0 + part.box.rows - 1,
                                                  part.box.col0 + part.box.cols - 1));
        }
      }
    CHECK(owned == rows * cols);
    // What two ranks both hold they see in the same order.
    for (int a = 0; a < 8; ++a)
      for (int b = 0; b < a; ++b) {
        const auto shared = [&](int seen_by, int with) {
          std::vector<Box> list;
          for (const CellPart& part : parts[static_cast<std::size_t>(seen_by)])
            if (std::count(part.holders->begin(), part.holders->end(), with) > 0)
              list.push_back(part.box);
          return list;
        };
        REQUIRE(shared(a, b) == shared(b, a));
      }
  }
}

TEST_CASE("holders share the columns evenly") {
  const std::vector<std::vector<HeldBox>> boxes{flat_cut(64, 32, 0, 2), block_cut(64, 32, 2, 2, 2)};
  for (int rank = 0; rank < 2; ++rank) {
    index_t owned = 0;
    for (const CellPart& part : refine(boxes, rank, 0))
      if (part.owner == rank) owned += part.box.count();
    CHECK(owned == 64 * 32 / 4);
  }
  // An element that a replica holds nowhere is nobody's.
  CHECK_THROWS_WITH(refine({flat_cut(4, 4, 0, 1), block_cut(4, 3, 1, 1, 1)}, 0, 0),
                    contains("12 of 16 elements"));
}

TEST_CASE("adasum of replicas of different cuboids equals the oracle") {
  for (const std::vector<Cuboid>& cuboids : kMeshes)
    for (const auto& model : {tiny_gpt, tiny_llama}) {
      Case c = different(cuboids);
      c.model = model;
      check_adasum(c);
      c = different(cuboids, 3);
      c.model = model;
      c.options.leaf = LeafRule::linear;
      make_uneven(c);
      check_adasum(c);
    }
}

TEST_CASE("different cuboids: a NaN, a replica without samples, a 16-bit wire") {
  for (const std::vector<Cuboid>& cuboids : kMeshes) {
    Case c = different(cuboids);
    c.broken = {1};
    check_adasum(c);
    c = different(cuboids);
    c.options.wire = WireType::bf16;
    check_adasum(c, 2 * 0x1p-8);
    c = different(cuboids);
    c.options.leaf = LeafRule::linear;
    c.leaves.weights[0] = 0;
    check_adasum(c);
  }
}

TEST_CASE("mean and sum of replicas of different cuboids") {
  for (const std::vector<Cuboid>& cuboids : kMeshes)
    for (const AggregateMethod method : {AggregateMethod::mean, AggregateMethod::sum}) {
      Case c = different(cuboids);
      c.options.method = method;
      make_uneven(c);
      check_weighted_sum(c);
    }
}

TEST_CASE("training with different cuboids is training with equal ones") {
  Config config = tiny_gpt();
  config.batch.sequences = 7;
  config.batch.micro = 2;
  config.precision.backend = BackendRule::cpu;
  const auto check = [&](AggregateMethod method, AggregatePlacement placement,
                         OptimizerKind optimizer) {
    config.aggregate.method = method;
    config.aggregate.placement = placement;
    config.optimizer.kind = optimizer;
    config.aggregate.gain_exponent = config.optimizer.kind == OptimizerKind::sgd ? 1 : 0.5;
    const double lr = config.optimizer.kind == OptimizerKind::sgd ? 0.1 : 3e-3;
    const Run equal = train(config, {}, 2, 10, lr);
    Config other = config;
    set_cuboids(other, {{2, 1, 1}, {1, 2, 2}});
    const Run run = train_on(other, 10, lr);
    INFO(method << " " << placement << " " << optimizer << "; " << run.bytes);
    CHECK(run.bytes_agree);
    CHECK(equal.losses.back() < equal.losses.front());
    for (std::size_t step = 0; step < equal.losses.size(); ++step) {
      CHECK(run.losses[step] == Approx(equal.losses[step]).epsilon(1e-4));
      CHECK(run.reports[step].grad_norm == Approx(equal.reports[step].grad_norm).epsilon(1e-3));
    }
  };
  using enum AggregateMethod;
  using enum AggregatePlacement;
  using enum OptimizerKind;
  check(mean, pre, adamw);
  check(sum, pre, sgd);
  check(adasum, pre, sgd);
  check(adasum, gain, adamw);
  check(adasum, gain, muon);
  check(adasum, post, lamb);
}

TEST_CASE("a dry run knows the bytes of replicas of different cuboids") {
  Config config = tiny_gpt();
  config.model.vocab = 64;
  set_cuboids(config, {{2, 1, 1}, {1, 2, 2}});
  double dry = 0, real = 0;
  for (int rank = 0; rank < 6; ++rank) {
    const RankPlan plan = simulate_rank(plan_of(config, 6), config.optimizer, rank);
    CHECK(difference(plan.counted, plan.predicted).empty());
    dry += static_cast<double>(plan.counted.bytes_on("world"));
  }
  std::mutex mutex;
  run_local_ranks(6, [&](Communicator& world) {
    Machine machine(world, test_machine(config));
    Trainer trainer(machine, plan_of(config, machine), test_options(config, 1), corpus(config));
    world.ledger().clear();
    (void)trainer.step(kNoFlag);
    const std::lock_guard lock(mutex);
    real += static_cast<double>(world.ledger().bytes_on("world"));
  });
  CHECK(dry == Approx(real).epsilon(0.01));
}
