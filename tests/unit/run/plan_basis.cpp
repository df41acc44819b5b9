// What makes a continued run plan anew: other nodes, other devices, other words about speeds.
#include "run/plan_basis.hpp"

#include "core/error.hpp"
#include "support/catch.hpp"

namespace t3d {
namespace {

PlanBasis basis_of(std::vector<std::string> nodes, std::vector<std::string> devices) {
  PlanBasis basis;
  basis.nodes = std::move(nodes);
  basis.devices = std::move(devices);
  return basis;
}

const PlanBasis kTwo = basis_of({"node03", "node04"}, {"cpu", "NVIDIA H200"});

PlanBasis with_cores() {
  PlanBasis basis = kTwo;
  basis.cores = {"2 threads on AMD EPYC", "1 thread on AMD EPYC, 0.5 cores at most"};
  return basis;
}

NodeKind kind(const std::string& name, double speed) {
  NodeKind kind;
  kind.name = name;
  kind.speed = speed;
  return kind;
}

}  // namespace

TEST_CASE("a basis written and read is the same, and a damaged one is refused") {
  for (const char* file : {"", "00ff"}) {
    for (PlanBasis basis : {kTwo, with_cores()}) {
      for (const double rate : {0.0, 3.6625e11}) {
        basis.speeds_file = file;
        basis.matmul = {"cpu fp32", rate, 384};
        const PlanBasis read = parse_plan_basis(basis.text(), "here");
        CHECK(read.nodes == basis.nodes);
        CHECK(read.devices == basis.devices);
        CHECK(read.cores == basis.cores);
        CHECK(read.speeds_file == file);
        CHECK(read.matmul.flops_per_second == rate);
        CHECK(read.matmul.kind == (rate > 0 ? "cpu fp32" : ""));
        CHECK(read.matmul.size == (rate > 0 ? 384 : 0));
      }
    }
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

TEST_CASE("ranks with other cores are named, where both are known") {
  PlanBasis now = with_cores();
  CHECK(changed_ranks(with_cores(), now).empty());
  CHECK(changed_ranks(kTwo, now).empty());  // a checkpoint of an earlier version
  now.cores[1] = "1 thread on AMD EPYC";
  CHECK(changed_ranks(with_cores(), now) ==
        "rank 1 has 1 thread on AMD EPYC and had 1 thread on AMD EPYC, 0.5 cores at most");
}

TEST_CASE("a matmul rate is that of the same ranks") {
  const auto known = [](const PlanBasis& before, const PlanBasis& now) {
    return known_matmul_rate(before, now).flops_per_second;
  };
  PlanBasis before = with_cores(), now = with_cores();
  CHECK(known(before, now) == 0);
  before.matmul = {"cpu fp32", 2e11, 384};
  CHECK(known(before, now) == 2e11);
  now.cores[0] = "1 thread on AMD EPYC";
  CHECK(known(before, now) == 0);
  now = with_cores();
  now.nodes[1] = "node05";
  CHECK(known(before, now) == 0);
  now = with_cores();
  now.nodes.pop_back();
  CHECK(known(before, now) == 0);
  before.cores.clear();  // an earlier version
  CHECK(known(before, with_cores()) == 0);
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
  const PlanBasis one_node = basis_of({"node03", "node03"}, {"cpu", "cpu"});
  const PlanBasis four = basis_of({"a", "b", "a", "b"}, {"cpu", "cpu", "cpu", "cpu"});
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
