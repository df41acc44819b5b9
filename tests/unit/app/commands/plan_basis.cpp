// What makes a continued run plan anew: other nodes, other devices, other words about speeds.
#include "app/commands/plan_basis.hpp"

#include "core/error.hpp"
#include "support/catch.hpp"

namespace t3d {
namespace {

const PlanBasis kTwo{{"node03", "node04"}, {"cpu", "NVIDIA H200"}, ""};

NodeKind kind(const std::string& name, double speed) {
  NodeKind kind;
  kind.name = name;
  kind.speed = speed;
  return kind;
}

}  // namespace

TEST_CASE("a basis written and read is the same, and a damaged one is refused") {
  for (const char* file : {"", "00ff"}) {
    PlanBasis basis = kTwo;
    basis.speeds_file = file;
    const PlanBasis read = parse_plan_basis(basis.text(), "here");
    CHECK(read.nodes == basis.nodes);
    CHECK(read.devices == basis.devices);
    CHECK(read.speeds_file == file);
  }
  CHECK(parse_plan_basis("\n", "here").nodes.empty());
  for (const char* text : {"\nnode03", "\nnode03\n", "\nnode03\tcpu", "\nnode03\nnode04\tcpu\n"})
    CHECK_THROWS_WITH(parse_plan_basis(text, "here"), Catch::StartsWith("here: "));
}

TEST_CASE("ranks on other nodes and devices are named") {
  CHECK(changed_ranks(kTwo, kTwo).empty());
  PlanBasis now = kTwo;
  now.nodes[1] = "node07";
  CHECK(changed_ranks(kTwo, now) == "rank 1 is on node07 and was on node04");
  now = kTwo;
  now.devices[1] = "cpu";
  CHECK(changed_ranks(kTwo, now) == "rank 1 computes on cpu and did on NVIDIA H200");
  now = kTwo;
  std::swap(now.nodes[0], now.nodes[1]);
  CHECK(changed_ranks(kTwo, now) == "rank 0 is on node04 and was on node03");
}

TEST_CASE("ranks, nodes and shape that have changed are one line") {
  const auto plan_of = [](const std::vector<Cuboid>& cuboids) {
    Plan plan;
    plan.ranks = 0;
    plan.replicas.clear();
    for (const Cuboid& cuboid : cuboids) {
      plan.replicas.emplace_back().cuboid = cuboid;
      plan.ranks += static_cast<int>(cuboid[0] * cuboid[1] * cuboid[2]);
    }
    return plan;
  };
  const Plan two = plan_of({{2, 1, 1}}), other = plan_of({{1, 2, 1}});
  const Plan more = plan_of({{2, 1, 1}, {2, 1, 1}});
  const PlanBasis one_node{{"node03", "node03"}, {"cpu", "cpu"}, ""};
  const PlanBasis four{{"a", "b", "a", "b"}, {"cpu", "cpu", "cpu", "cpu"}, ""};
  CHECK(kTwo.node_count() == 2);
  CHECK(one_node.node_count() == 1);
  CHECK(changed_shape({two, kTwo}, {two, kTwo}).empty());
  CHECK(changed_shape({two, kTwo}, {other, kTwo}) == "mesh 2 x 1 x 1 -> 1 x 2 x 1");
  CHECK(changed_shape({two, kTwo}, {two, one_node}) == "nodes 2 -> 1");
  CHECK(changed_shape({two, one_node}, {more, four}) ==
        "ranks 2 -> 4, nodes 1 -> 2, mesh 2 x 1 x 1 -> 2 x (2 x 1 x 1)");
  CHECK(changed_shape({two, {}}, {two, one_node}).empty());  // a checkpoint that names no nodes
}

TEST_CASE("a file of speeds asks for another plan where both were made from one") {
  PlanBasis before = kTwo, now = kTwo;
  before.speeds_file = "1";
  CHECK(changed_ranks(before, now).empty());  // the key asks, if anything does
  CHECK(changed_ranks(now, before).empty());
  now.speeds_file = "2";
  CHECK(changed_ranks(before, now) == "hetero.file holds other speeds");
}

TEST_CASE("what the input says of speeds asks for another plan, where it is written") {
  Config before, now;
  CHECK(changed_speeds(before, now, {}).empty());
  now.hetero.speeds = SpeedSource::file;
  CHECK(changed_speeds(before, now, {}).empty());
  const Origins both{{"hetero.speeds", {}}, {"hetero.file", {}}};
  CHECK(changed_speeds(before, now, both) == "hetero.speeds is \"file\" and was \"probe\"");
  before = now;
  now.hetero.file = "b.json";
  CHECK(changed_speeds(before, now, both) == "hetero.file is \"b.json\" and was \"\"");
  before.hetero.speeds = now.hetero.speeds = SpeedSource::probe;
  CHECK(changed_speeds(before, now, both).empty());  // nobody reads it
  now.nodes = {kind("old-*", 0.5)};
  CHECK(changed_speeds(before, now, {}) == "[[nodes]] has changed");
  before.nodes = {kind("old-*", 0.25)};
  CHECK(changed_speeds(before, now, {}) == "[[nodes]] has changed");
  before.nodes = now.nodes;
  CHECK(changed_speeds(before, now, {}).empty());
}

}  // namespace t3d
