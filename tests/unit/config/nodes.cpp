// [[nodes]]: read, refused with the places of all faults, found by name, feature and partition, and
// what a stated speed makes of measured ones.
#include "config/nodes.hpp"

#include <cstdlib>

#include "config/config_load.hpp"
#include "config/defaults.hpp"
#include "support/catch.hpp"

using namespace t3d;

namespace {

const std::string kInput = R"(version = 1
[run]
steps = 1
[model]
layers = 1
hidden = 8
heads = 2
context = 8
[data]
train = "x"
[batch]
sequences = 1
)";

std::string faults_of(const std::string& nodes) {
  try {
    (void)parse_config(kInput + nodes, "in.toml");
  } catch (const ConfigErrors& errors) {
    CHECK(errors.code() == ExitCode::config);
    return errors.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

/// A rank that takes so many seconds for the work below.
constexpr StepWork kWork{1000, 0, 0, 0};
RankSpeed rank_of(double seconds) {
  RankSpeed speed;
  speed.curve(WorkClass::matmul).add(1000, seconds);
  return speed;
}

NodeKind kind_with_speed(double speed) {
  NodeKind kind;
  kind.name = "*";
  kind.speed = speed;
  return kind;
}

}  // namespace

TEST_CASE("kinds of nodes are read, written and read again") {
  const Config config = parse_config(kInput + R"(
[[nodes]]
name = "old-*"
ranks = 2
threads = 4
speed = 0.5
[[nodes]]
feature = "a100"
partition = "fast"
device = "cpu"
)",
                                     "in.toml");
  REQUIRE(config.nodes.size() == 2);
  CHECK(config.nodes[0].name == "old-*");
  CHECK(config.nodes[0].ranks == 2);
  CHECK(config.nodes[0].threads == 4);
  CHECK(config.nodes[0].speed == 0.5);
  CHECK(config.nodes[0].device == NodeDevice::automatic);
  CHECK(config.nodes[1].feature == "a100");
  CHECK(config.nodes[1].partition == "fast");
  CHECK(config.nodes[1].device == NodeDevice::cpu);
  CHECK(config.nodes[1].speed < 0);
  const Config again = parse_config(resolved_text(config, {}), "resolved.toml");
  const TableList& list = *find_list("nodes");
  CHECK(list_text(list, again) == list_text(list, config));
  REQUIRE(again.nodes.size() == 2);
  CHECK(again.nodes[0].speed == 0.5);
}

TEST_CASE("changed kinds of nodes are differences of the input") {
  const auto with = [](const std::string& nodes) {
    return parse_config(kInput + nodes, "in.toml");
  };
  const std::string first = "[[nodes]]\nname = \"old-*\"\nspeed = 0.5\n";
  const std::string second = "[[nodes]]\nfeature = \"a100\"\nthreads = 4\n";
  CHECK(config_differences(with(first + second), with(first + second)).empty());
  using Lines = std::vector<std::string>;
  CHECK(config_differences(with(first), with("[[nodes]]\nname = \"old-*\"\nspeed = 0.25\n")) ==
        Lines{R"([[nodes]] 1: name = "old-*", speed = 0.5 -> name = "old-*", speed = 0.25)"});
  CHECK(config_differences(with(first), with(first + second)) ==
        Lines{R"([[nodes]] 2: none -> feature = "a100", threads = 4)"});
  CHECK(config_differences(with(first + second), with(second + first)).size() == 2);
}

TEST_CASE("all faults of kinds of nodes are told at once, each with its place") {
  const std::string text = faults_of(R"([[nodes]]
name = "a*"
speed = -1
speeed = 2
[[nodes]]
ranks = 0
device = "tpu"
[[nodes]]
threads = 2
[[nodez]]
name = "b"
[[mesh]]
replicas = 2
)");
  CHECK(has(text, "in.toml:15:1: nodes.speed"));
  CHECK(has(text, "in.toml:16:1: there is no key nodes.speeed; did you mean nodes.speed?"));
  CHECK(has(text, "in.toml:18:1: nodes.ranks"));
  CHECK(has(text, "in.toml:19:1: nodes.device"));
  CHECK(has(text, "in.toml:20:1: this [[nodes]] does not say which nodes it means"));
  CHECK(has(text, "there is no [[nodez]]; did you mean nodes?"));
  CHECK(has(text, "there is no [[mesh]]; write [mesh], once"));
  CHECK(has(faults_of("[nodes]\nname = \"a\"\n"), "write [[nodes]]"));
}

TEST_CASE("numbers of kinds of nodes have limits") {
  const auto one = [](const std::string& line) {
    return faults_of("[[nodes]]\nname = \"a\"\n" + line + "\n");
  };
  CHECK(has(one("threads = 4097"), "in.toml:15:1: nodes.threads"));
  CHECK(has(one("threads = 100000"), "nodes.threads"));
  CHECK(one("threads = 4096").empty());
  for (const char* speed : {"1e-320", "1e-07"})
    CHECK(has(one(std::string("speed = ") + speed),
              std::string("in.toml:15:1: nodes.speed cannot be ") + speed));
  for (const char* speed : {"0", "1e-6", "1e8"})
    CHECK(one(std::string("speed = ") + speed).empty());
}

TEST_CASE("kinds that no node is of are told, with the nodes") {
  Config config;
  config.nodes.resize(4);
  config.nodes[0].name = "old*";
  config.nodes[1].name = "*1";
  config.nodes[2].name = "new*";
  config.nodes[2].speed = 2;
  config.nodes[3].feature = "a100";
  const std::vector<NodeFacts> nodes{{"old1", "", {}, 2}, {"old1", "", {}, 2}, {"b2", "", {}, 1}};
  const std::vector<std::string> notes = unused_kinds(config, nodes);
  REQUIRE(notes.size() == 3);
  CHECK(notes[0] == R"([[nodes]] 2 (name = "*1") fits only nodes that one before it fits)");
  CHECK(notes[1] ==
        R"([[nodes]] 3 (name = "new*", speed = 2) fits no node; the nodes are b2, old1)");
  CHECK(has(notes[2], "[[nodes]] 4"));
  std::vector<NodeFacts> many;
  for (char letter = 'a'; letter <= 'k'; ++letter) many.push_back({{letter}, "", {}, 1});
  CHECK(has(unused_kinds(config, many)[0], "a, b, c, d, e, f, g, h and 3 more"));
}

TEST_CASE("patterns fit as in a shell") {
  CHECK(matches_pattern("*", ""));
  CHECK(matches_pattern("gpu*", "gpu17"));
  CHECK(matches_pattern("*-n?", "old-rack-n7"));
  CHECK(matches_pattern("a*b*c", "aXbYbZc"));
  CHECK(matches_pattern("node", "node"));
  CHECK_FALSE(matches_pattern("node", "node1"));
  CHECK_FALSE(matches_pattern("gpu?", "gpu"));
  CHECK_FALSE(matches_pattern("a*b", "acbd"));
  CHECK_FALSE(matches_pattern("", "x"));
}

TEST_CASE("a node is of the first kind that fits, by all that is given") {
  Config config;
  config.nodes.resize(3);
  config.nodes[0].feature = "a100";
  config.nodes[0].partition = "fast";
  config.nodes[1].name = "old*";
  config.nodes[2].feature = "a100";
  NodeFacts node{"old1", "fast", {"ib", "a100"}, 1};
  CHECK(kind_of(config, node)->partition == "fast");
  node.partition = "slow";
  CHECK(kind_of(config, node)->name == "old*");
  node.name = "new1";
  CHECK(kind_of(config, node)->feature == "a100");
  node.features = {"ib"};
  CHECK_FALSE(kind_of(config, node).has_value());
}

TEST_CASE("features and partition come from the environment") {
  setenv("T3D_NODE_FEATURES", "ib,a100", 1);
  setenv("SLURM_JOB_CONSTRAINTS", "[rack1|rack2]&big", 1);
  setenv("SLURM_JOB_PARTITION", "fast", 1);
  const NodeFacts facts = facts_here("n1", 3);
  for (const char* name : {"T3D_NODE_FEATURES", "SLURM_JOB_CONSTRAINTS", "SLURM_JOB_PARTITION"})
    unsetenv(name);
  CHECK(facts.features == std::vector<std::string>{"ib", "a100", "rack1", "rack2", "big"});
  CHECK(facts.partition == "fast");
  CHECK(facts.ranks == 3);
}

TEST_CASE("another number of ranks on a node, or no speed at all, is refused") {
  NodeKind four = kind_with_speed(0);
  four.ranks = 4;
  const NodeFacts a{"a", "", {}, 4}, b{"b", "", {}, 2};
  CHECK_NOTHROW(check_node_kinds({a, b}, {four, std::nullopt}));
  try {
    check_node_kinds({a, b, b}, {four, four, four});
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::config);
    CHECK(has(error.what(), "node b has 2 ranks, and its [[nodes]] says 4"));
    CHECK(has(error.what(), "every rank is on a node of speed 0"));
  }
}

TEST_CASE("stated speeds keep the level that was measured, and their own ratios") {
  Speeds speeds;
  speeds.ranks = {rank_of(4), rank_of(3), rank_of(7), rank_of(1), rank_of(5)};
  const std::vector<std::optional<NodeKind>> kinds{
      kind_with_speed(1), kind_with_speed(2), std::nullopt, kind_with_speed(2), kind_with_speed(0)};
  state_speeds(kinds, true, kWork, speeds);
  // 4 x 1, 3 x 2 and 1 x 2 seconds at speed 1: the median is 4.
  CHECK(speeds.ranks[0].seconds(kWork) == 4);
  CHECK(speeds.ranks[1].seconds(kWork) == 2);
  CHECK(speeds.ranks[2].seconds(kWork) == 7);
  CHECK(speeds.ranks[3].seconds(kWork) == 2);
  CHECK(speeds.ranks[4].curve(WorkClass::matmul).empty());
  speeds.ranks.assign(5, rank_of(6));
  state_speeds(kinds, false, kWork, speeds);
  CHECK(speeds.ranks[0].seconds(kWork) == 6);
  CHECK(speeds.ranks[1].seconds(kWork) == 3);
  CHECK(speeds.ranks[2].seconds(kWork) == 6);
  CHECK(speeds.ranks[4].curve(WorkClass::matmul).empty());
}
