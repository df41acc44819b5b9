// The input meets the ranks: which cuboid "auto" takes, and what does not fit.
#include "config/config_load.hpp"
#include "config/make_plan.hpp"
#include "support/catch.hpp"

namespace t3d {
namespace {

using Shape = std::array<index_t, 3>;

Config with_ratio(index_t tokens_per_hidden) {
  // T / h = tokens_per_hidden, with enough sequences and heads that no shape is skipped.
  Config config;
  config.model.hidden = 4096;
  config.model.heads = config.model.kv_heads = 4096;
  config.model.context = 4;
  config.batch.sequences = 1024 * tokens_per_hidden;
  return config;
}

Config small() {
  return parse_config(
      "[run]\nsteps = 1\n[model]\npreset = \"gpt-tiny\"\n[data]\ntrain = \"a\"\n[batch]\nsequences "
      "= 8\n",
      "in.toml");
}

std::string fault_of(Config config, int ranks) {
  try {
    check_against_ranks(config, ranks);
  } catch (const ConfigErrors& errors) {
    return errors.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the cuboid of least volume, as tabulated") {
  // Values worked out independently from V = 12 h^2 (p-1) + 4 T h (q-1) + 12 T h (r-1).
  CHECK(choose_cuboid(with_ratio(1), 8) == Shape{2, 4, 1});
  CHECK(choose_cuboid(with_ratio(1), 64) == Shape{4, 8, 2});  // as good as 2 x 8 x 4, smaller r
  CHECK(choose_cuboid(with_ratio(4), 64) == Shape{8, 4, 2});
  CHECK(choose_cuboid(with_ratio(16), 64) == Shape{16, 4, 1});
  CHECK(choose_cuboid(with_ratio(4), 512) == Shape{16, 8, 4});
  CHECK(choose_cuboid(with_ratio(8), 4096) == Shape{64, 16, 4});  // as good as 32 x 16 x 8
  CHECK(choose_cuboid(with_ratio(1), 1) == Shape{1, 1, 1});
}

TEST_CASE("shapes that leave ranks empty are the last resort") {
  Config config = small();  // 8 sequences, 4 heads
  for (index_t ranks = 1; ranks <= 40; ++ranks) {
    const Shape shape = choose_cuboid(config, ranks);
    CHECK(shape[0] * shape[1] * shape[2] == ranks);
    CHECK(shape[0] <= 8);
    CHECK(shape[1] <= 4);
  }
  config.batch.sequences = 1;
  config.model.kv_heads = 1;
  CHECK(choose_cuboid(config, 7) == Shape{1, 1, 7});
  config.batch.micro = 0;
  config.batch.sequences = 14;
  config.mesh.replicas = 2;
  config.model.context = 1 << 20;  // tokens are dear to gather: all ranks along p
  CHECK(choose_cuboid(config, 7) == Shape{7, 1, 1});
  config.batch.micro = 6;  // fewer sequences in a pass than ranks: along r
  CHECK(choose_cuboid(config, 7) == Shape{1, 1, 7});
}

TEST_CASE("a file of speeds that is not read is told") {
  Config config = small();
  const Origins file{{"hetero.file", {"in.toml", 9, 1}}};
  Origins both = file;
  both["hetero.speeds"] = {"in.toml", 8, 1};
  CHECK(unused_input(config, 2).empty());
  config.hetero.file = "a.json";
  for (const SpeedSource source : {SpeedSource::probe, SpeedSource::equal}) {
    config.hetero.speeds = source;
    CHECK_NOTHROW(check_against_ranks(config, 1, file));
    CHECK(unused_input(config, 2) ==
          std::vector{fmt::format("hetero.file is not read: hetero.speeds is \"{}\"", source)});
    try {
      check_against_ranks(config, 1, both);
      FAIL("nothing was thrown");
    } catch (const ConfigErrors& errors) {
      CHECK(contains(errors.what(), "in.toml:9:1: hetero.file is given, and hetero.speeds is"));
    }
  }
  config.hetero.speeds = SpeedSource::file;
  CHECK_NOTHROW(check_against_ranks(config, 1, both));
  CHECK(unused_input(config, 2).empty());
  CHECK(contains(unused_input(config, 1).at(0), "only one rank"));
}

TEST_CASE("auto fills the cuboid and stays auto") {
  Config config = small();
  config.mesh.replicas = 2;
  check_against_ranks(config, 6);
  CHECK(config.mesh.cuboid_auto);
  CHECK(config.mesh.cuboid[0] * config.mesh.cuboid[1] * config.mesh.cuboid[2] == 3);
}

TEST_CASE("ranks that equal replicas do not use up are idle") {
  for (const auto& [ranks, each] : {std::pair{8, 2}, {7, 2}, {5, 1}, {9, 3}}) {
    Config config = small();
    config.mesh.replicas = 3;
    check_against_ranks(config, ranks);
    fill_computed_defaults(config, "in.toml");
    const Plan plan = make_plan(config, {ranks, TransportKind::host, false});
    CHECK(plan.ranks == ranks);
    CHECK(plan.place.empty());
    CHECK(plan.mesh().ranks() == 3 * each);
    CHECK(std::ssize(plan.active()) == 3 * each);
    CHECK(plan.active_rank(ranks - 1).has_value() == (3 * each == ranks));
  }
  Config config = small();
  config.mesh.replicas = 2;
  config.mesh.place = {4, 0, 3, 1};
  check_against_ranks(config, 5);
  const Plan plan = make_plan(config, {5, TransportKind::host, false});
  CHECK(plan.active() == std::vector<int>{0, 1, 3, 4});
  CHECK_FALSE(plan.active_rank(2).has_value());
  for (const std::vector<int>& place :
       {std::vector<int>{4, 0, 3, 3}, {4, 0, 3}, {4, 0, 3, 5}, {4, 3, 2, 1, 0}}) {
    config.mesh.place = place;
    CHECK(contains(fault_of(config, 5), "write 4 different ones of 0 to 4"));
  }
}

TEST_CASE("a mesh that does not fit says what would") {
  Config config = small();
  config.mesh.replicas = 3;
  CHECK(contains(fault_of(config, 2), "mesh.replicas = 3 needs as many ranks, and there are 2"));
  CHECK(contains(fault_of(config, 2), "start 3 ranks, or write at most 2, or \"auto\""));
  CHECK(fault_of(config, 3).empty());

  config.mesh.replicas = 2;
  config.mesh.cuboid_auto = false;
  config.mesh.cuboid = {2, 2, 1};
  CHECK(fault_of(config, 8).empty());
  CHECK(contains(fault_of(config, 6), "2 replicas of 2 x 2 x 1 need 8 ranks, and there are 6"));
  CHECK(contains(fault_of(config, 6), "start 8 ranks, or replicas = 2 with cuboid = ["));
  CHECK(contains(fault_of(config, 7), "replicas = 1 with cuboid = ["));
  CHECK(contains(fault_of(config, 7), "or write mesh.cuboid = \"auto\""));
  config.mesh.replicas = 1;
  CHECK(contains(fault_of(config, 1), "1 replica of 2 x 2 x 1 needs 4 ranks, and there is 1"));
  CHECK(contains(fault_of(config, 1), "fits 1 rank,"));
  config.mesh.cuboid = {99999999, 99999999, 99999999};
  CHECK(contains(fault_of(config, 6), "far too many"));
  CHECK_FALSE(contains(fault_of(config, 6), "start"));
}

TEST_CASE("cuboids of several kinds must add up to the ranks") {
  Config config = small();
  config.mesh.replicas = 2;
  config.mesh.cuboids = {2, 1, 1, 1, 2, 2};
  CHECK(fault_of(config, 6).empty());
  CHECK(contains(fault_of(config, 8), "mesh.cuboids need 6 ranks, and there are 8"));
  CHECK(contains(fault_of(config, 8), "replicas = 2 with cuboid = ["));
  config.mesh.place = {5, 4, 3, 2, 1, 0};
  CHECK(fault_of(config, 6).empty());
  config.mesh.place = {5, 4, 3, 2, 1, 1};
  CHECK(contains(fault_of(config, 6), "write each of 0 to 5 exactly once"));
  config.mesh.cuboids = {99999999, 99999999, 99999999, 99999999, 99999999, 99999999};
  CHECK(contains(fault_of(config, 6), "far too many"));
}

TEST_CASE("place must be a permutation of the ranks") {
  Config config = small();
  config.mesh.place = {1, 0, 2};
  CHECK(fault_of(config, 3).empty());
  config.mesh.place = {1, 1, 2};
  CHECK(contains(fault_of(config, 3), "write each of 0 to 2 exactly once"));
  config.mesh.place = {0, 1};
  CHECK_FALSE(fault_of(config, 3).empty());
}

}  // namespace t3d
