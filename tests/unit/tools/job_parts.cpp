// What plan has Slurm asked for.
#include "tools/plan/job_parts.hpp"

#include "support/catch.hpp"

namespace t3d::test {
namespace {

NodeClass node_class(const std::string& name, std::vector<std::string> features,
                     const std::string& partition, const std::string& nodes) {
  NodeClass one;
  one.name = name;
  one.nodes = 4;
  one.features = std::move(features);
  one.partition = partition;
  one.node_list = nodes;
  return one;
}

}  // namespace

TEST_CASE("a class's nodes are asked for by all its features, without others that have them too") {
  Cluster cluster;
  cluster.classes = {node_class("old", {"xeon"}, "p", "a[1-4]"),
                     node_class("new", {"xeon", "avx512", "ib"}, "p", "b[1-4]"),
                     node_class("far", {"xeon"}, "q", "c[1-4]"),
                     node_class("shared", {"xeon", "ib"}, "r", "d[1-4]")};
  cluster.scheduler.partitions.emplace_back().name = "p";
  cluster.scheduler.partitions.front().classes = {"old", "new", "shared"};
  const std::vector<SbatchPart> parts = sbatch_parts({{1, 2}, {0, 3}}, cluster);
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].constraint == "xeon&avx512&ib");
  CHECK(parts[0].exclude.empty());
  CHECK(parts[0].nodes == 2);
  CHECK(parts[1].constraint == "xeon");
  CHECK(parts[1].exclude == "b[1-4],d[1-4]");
  CHECK(parts[1].partition == "p");
}

}  // namespace t3d::test
