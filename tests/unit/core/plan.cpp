// The plan as a value (core/plan.hpp): written and read without loss, refused with the file's name
// where it is damaged, and kept or made anew when a run is continued.
#include "core/plan.hpp"

#include <algorithm>
#include <limits>

#include "run/replan.hpp"
#include "support/catch.hpp"
#include "support/plan_rig.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

/// Two equal replicas: their text is one table.
Plan small() {
  Config config = gpt_input();
  config.batch.sequences = 6;
  return plan_of(config, Grid{2, 1, 1, {}, {}, {}}, 2);
}

std::vector<Plan> many_plans() {
  std::vector<Plan> plans;
  for (const Grid& grid : all_grids()) plans.push_back(plan_of(gpt_input(), grid, 2));
  Config config = llama_input();
  config.batch.sequences = 23;
  config.batch.micro = 3;
  config.batch.shares = {3, 1, 0};
  config.precision.compute = ComputeType::bf16;
  config.aggregate.method = AggregateMethod::adasum;
  config.aggregate.leaves = 2;
  config.aggregate.reference_batch = 1.0 / 3;
  plans.push_back(plan_of_cuboids(config, {{2, 1, 1}, {1, 2, 3}, {1, 1, 1}}));
  Plan idle = plan_of_cuboids(config, {{2, 1, 1}, {1, 1, 1}, {1, 1, 1}}, 9);
  idle.place = {8, 0, 5, 3};
  idle.transport = TransportKind::nccl_and_staged;
  idle.replicas[0].whole = {100, 0};
  idle.check();
  plans.push_back(idle);
  return plans;
}

/// What parse_plan says of a text that is no plan; empty where it takes it.
std::string refusal(const std::string& text) {
  try {
    (void)parse_plan(text, "runs/a/plan.toml");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::io);
    CHECK_THAT(error.what(), test::contains("runs/a/plan.toml"));
    return error.what();
  }
  return "";
}

/// The text of a plan with one line that begins with `key = ` replaced by others.
std::string with_line(const Plan& plan, const std::string& key, const std::string& lines) {
  std::string text = plan.text();
  const auto first = text.find("\n" + key + " = ") + 1;
  REQUIRE(first > 0);
  text.replace(first, text.find('\n', first) + 1 - first, lines);
  return text;
}

std::string with_value(const std::string& key, const std::string& value) {
  return with_line(small(), key, key + " = " + value + "\n");
}

struct Changed {
  const char* name;
  std::function<void(Plan&)> change;
};

/// One change of every field that a plan has.
std::vector<Changed> all_changes() {
  const auto replica = [](const char* name, const std::function<void(ReplicaPlan&)>& change) {
    return Changed{name, [change](Plan& plan) { change(plan.replicas[1]); }};
  };
  return {
      {"ranks", [](Plan& p) { p.ranks = 7; }},
      {"place",
       [](Plan& p) {
         p.place = {1, 0, 2, 3};
       }},
      {"model.preset", [](Plan& p) { p.model.preset = "gpt-tiny"; }},
      {"model.layers", [](Plan& p) { ++p.model.layers; }},
      {"model.hidden", [](Plan& p) { p.model.hidden = 64; }},
      {"model.heads", [](Plan& p) { p.model.heads = 8; }},
      {"model.kv_heads", [](Plan& p) { p.model.kv_heads = 2; }},
      {"model.ffn", [](Plan& p) { ++p.model.ffn; }},
      {"model.vocab", [](Plan& p) { ++p.model.vocab; }},
      {"model.context", [](Plan& p) { ++p.model.context; }},
      {"model.norm", [](Plan& p) { p.model.norm = NormKind::rms; }},
      {"model.activation", [](Plan& p) { p.model.activation = Activation::swiglu; }},
      {"model.position", [](Plan& p) { p.model.position = Position::rope; }},
      {"model.rope_base", [](Plan& p) { p.model.rope.base *= 1 + 1e-15; }},
      {"model.rope_scaling", [](Plan& p) { p.model.rope.scaling = RopeScaling::yarn; }},
      {"model.rope_factor", [](Plan& p) { p.model.rope.factor = 8; }},
      {"model.rope_original_context", [](Plan& p) { p.model.rope.original_context = 4; }},
      {"model.rope_low_freq_factor", [](Plan& p) { p.model.rope.low_freq_factor = 2; }},
      {"model.rope_high_freq_factor", [](Plan& p) { p.model.rope.high_freq_factor = 8; }},
      {"model.rope_beta_fast", [](Plan& p) { p.model.rope.beta_fast = 16; }},
      {"model.rope_beta_slow", [](Plan& p) { p.model.rope.beta_slow = 2; }},
      {"model.rope_attention_factor", [](Plan& p) { p.model.rope.attention_factor = 1.5; }},
      {"model.head_size", [](Plan& p) { p.model.head_columns = 12; }},
      {"model.qk_norm", [](Plan& p) { p.model.qk_norm = true; }},
      {"model.attention_bias", [](Plan& p) { p.model.attention_bias = AttentionBias::qkv; }},
      {"model.freeze",
       [](Plan& p) {
         p.model.freeze = {"wte.*", "blocks.0.*"};
       }},
      {"lora.rank", [](Plan& p) { p.model.lora.rank = 8; }},
      {"lora.alpha", [](Plan& p) { p.model.lora.alpha = 16; }},
      {"lora.targets", [](Plan& p) { p.model.lora.targets = {"gate"}; }},
      {"model.norm_eps", [](Plan& p) { p.model.norm_eps *= 1 + 1e-15; }},
      {"model.bias", [](Plan& p) { p.model.bias = false; }},
      {"model.tied_embeddings", [](Plan& p) { p.model.tied_embeddings = false; }},
      {"model.dropout", [](Plan& p) { p.model.dropout = 0.1; }},
      {"model.init_std", [](Plan& p) { p.model.init_std = 0.03; }},
      {"optimizer", [](Plan& p) { p.optimizer = OptimizerKind::lamb; }},
      {"aggregate.method", [](Plan& p) { p.aggregate.method = AggregateMethod::sum; }},
      {"aggregate.placement", [](Plan& p) { p.aggregate.placement = AggregatePlacement::post; }},
      {"aggregate.algorithm", [](Plan& p) { p.aggregate.algorithm = AggregateAlgorithm::flat; }},
      {"aggregate.per", [](Plan& p) { p.aggregate.per = GroupBy::block; }},
      {"aggregate.reference_batch", [](Plan& p) { p.aggregate.reference_batch += 1e-12; }},
      {"aggregate.leaves", [](Plan& p) { p.aggregate.leaves = 2; }},
      {"aggregate.leaf", [](Plan& p) { p.aggregate.leaf = LeafRule::linear; }},
      {"aggregate.wire", [](Plan& p) { p.aggregate.wire = WireType::bf16; }},
      {"aggregate.gain_exponent", [](Plan& p) { p.aggregate.gain_exponent = 0.25; }},
      {"compute", [](Plan& p) { p.compute = ComputeType::bf16; }},
      {"matmul", [](Plan& p) { p.matmul = MatmulType::fp8; }},
      {"recompute", [](Plan& p) { p.recompute = Recompute::block; }},
      {"reduce_in_fp32", [](Plan& p) { p.reduce_in_fp32 = true; }},
      {"keep_weights", [](Plan& p) { p.keep_weights = !p.keep_weights; }},
      {"keep_inputs", [](Plan& p) { p.keep_inputs = !p.keep_inputs; }},
      {"transport", [](Plan& p) { p.transport = TransportKind::nccl_and_staged; }},
      {"gemm_engine", [](Plan& p) { p.gemm_engine = EngineRule::native; }},
      {"attention_engine", [](Plan& p) { p.attention_engine = EngineRule::native; }},
      {"tune", [](Plan& p) { p.tune = false; }},
      {"logits_bytes", [](Plan& p) { ++p.logits_bytes; }},
      replica("cuboid",
              [](ReplicaPlan& r) {
                r.cuboid = {1, 2, 1};
              }),
      replica("hidden",
              [](ReplicaPlan& r) {
                recut(r.hidden, {0, 31, 32});
              }),
      replica("groups",
              [](ReplicaPlan& r) {
                recut(r.groups, {0, 1, 4});
              }),
      replica("ffn",
              [](ReplicaPlan& r) {
                recut(r.ffn, {0, 1, 48});
              }),
      replica("vocab",
              [](ReplicaPlan& r) {
                recut(r.vocab, {0, 0, 61});
              }),
      replica("storage",
              [](ReplicaPlan& r) {
                recut(r.storage, {0, 1, 3});
              }),
      replica("attention",
              [](ReplicaPlan& r) {
                r.attention = r.attention == AttentionCut::heads ? AttentionCut::sequences
                                                                 : AttentionCut::heads;
              }),
      replica("whole",
              [](ReplicaPlan& r) {
                r.whole = {100, 40};
              }),
      replica("leaves", [](ReplicaPlan& r) { r.leaves.front().push_back(1); }),
      replica("tokens",
              [](ReplicaPlan& r) {
                recut(r.tokens.front(), {0, 0, 2});
              }),
  };
}

}  // namespace

TEST_CASE("a plan written and read is the same plan") {
  std::vector<std::string> hashes;
  for (const Plan& plan : many_plans()) {
    INFO(plan.text());
    const Plan read = parse_plan(plan.text(), "plan.toml");
    CHECK(read == plan);
    CHECK(read.hash() == plan.hash());
    CHECK(plan_differences(plan, read).empty());
    CHECK(read.replicas == plan.replicas);
    CHECK(read.active() == plan.active());
    CHECK(read.mesh().describe() == plan.mesh().describe());
    hashes.push_back(plan.hash());
  }
  std::sort(hashes.begin(), hashes.end());
  CHECK(std::adjacent_find(hashes.begin(), hashes.end()) == hashes.end());
  CHECK(hashes.size() >= 12);
}

TEST_CASE("every field is in the hash, in the text and among the differences") {
  const Plan plan = small();
  std::size_t lines = 0;
  for (const auto& [name, change] : all_changes()) {
    INFO(name);
    Plan other = plan;
    change(other);
    CHECK(other.hash() != plan.hash());
    CHECK_FALSE(other == plan);
    const std::vector<std::string> differences = plan_differences(plan, other);
    REQUIRE(differences.size() == 1);
    CHECK_THAT(differences[0], test::contains(std::string(name) + ": "));
    ++lines;
  }
  // Fields that are added to a plan belong into this list, too.
  const std::string text = plan.text();
  const auto keys = std::count(text.begin(), text.end(), '=');
  constexpr index_t kNoFields = 2;  // version, copies
  CHECK(keys - kNoFields == static_cast<index_t>(lines));
  Plan more = plan;
  more.replicas.push_back(more.replicas.back());
  CHECK(plan_differences(plan, more) == std::vector<std::string>{"replicas: 2 -> 3"});
}

TEST_CASE("a damaged plan is refused with its name, whatever stands in it") {
  const Plan plan = small();
  CHECK(refusal(plan.text()).empty());
  CHECK(refusal("# a comment\n\n" + plan.text()).empty());
  for (const char* key : {"ranks", "model.heads", "tune", "cuboid", "tokens", "copies", "version"})
    CHECK_THAT(refusal(with_line(plan, key, "")), test::contains(std::string(key) + " is missing"));
  CHECK_THAT(refusal(with_line(plan, "tune", "tune = true\ncolour = 3\n")),
             test::contains("colour is not known"));
  CHECK_THAT(refusal(with_line(plan, "tune", "tune = true\ntune = true\n")),
             test::contains("tune is given twice"));
  CHECK_THAT(refusal(with_line(plan, "tune", "tune\n")), test::contains("key = value"));
  CHECK_THAT(refusal(with_value("version", "2")), test::contains("version 2"));
  for (const char* text :
       {"", "\n", "=", " = ", "[[replica]]", "\xff\xfe = 3", "[[replica]]\n[[replica]]"})
    CHECK_FALSE(refusal(text).empty());
  const std::string whole = plan.text();
  for (std::size_t length = 0; length + 1 < whole.size(); length += 7)
    CHECK_FALSE(refusal(whole.substr(0, length)).empty());
}

TEST_CASE("plans of earlier versions say nothing of whole matrices") {
  const Plan plan = small();
  CHECK(parse_plan(with_line(plan, "whole", ""), "plan.toml") == plan);
}

TEST_CASE("numbers, lists and words that do not fit are refused") {
  const std::vector<std::pair<const char*, std::vector<const char*>>> cases{
      {"ranks", {"", "x", "-1", "0", "3", "4.0", "4 ", "99999999999", "9999999999999999999999"}},
      {"place",
       {"[0, 1, 2]", "[0, 1, 2, 2]", "[0, 1, 2, 4]", "[0, 1, 2, -1]", "0", "[4294967296, 1, 2, 3]",
        "[0, 1, 2, 3", "[0, 1, 2, 3]]", "[[0, 1, 2, 3]]", "[0, 1, 2, x]", "[0 1 2 3]"}},
      {"model.layers", {"0", "-1", "9223372036854775808"}},
      {"model.hidden", {"0", "33", "-32"}},
      {"model.heads", {"0", "3", "-4"}},
      {"model.kv_heads", {"0", "3"}},
      {"model.context", {"0", "-8"}},
      {"model.norm_eps", {"nan", "inf", "\"1\""}},
      {"model.dropout", {"nan", "-1", "1.5"}},
      {"model.norm", {"layernorm", "\"\"", "\"none\"", "\"", "3"}},
      {"model.bias", {"1", "True", "\"true\"", ""}},
      {"aggregate.reference_batch", {"0", "-1", "nan", "inf"}},
      {"aggregate.placement", {"\"auto\""}},
      {"aggregate.algorithm", {"\"auto\""}},
      {"logits_bytes", {"0", "-1"}},
      {"copies", {"0", "-1", "3", "1000000", "100000000000", "9223372036854775807"}},
      {"cuboid",
       {"[]", "[2, 1]", "[2, 1, 1, 1]", "[0, 1, 1]", "[-2, -1, 1]", "[1, 1, 1]",
        "[4611686018427387904, 4, 1]", "[1000000000, 1000000000, 1000000000]", "[2, 1, 1"}},
      {"hidden",
       {"[[0, 31], 1]", "[[1, 32], 1]", "[[0, 16, 32], 1]", "[[0, 32], 0]", "[[0, 32], -1]",
        "[[0], 1]", "[[], 1]", "[0, 32]", "[[0, 32]]", "[[0, 32], 1", "[[0, 32], 1] 5",
        "[[0, 32], 1]]", "[[[[[[[[0, 32], 1]"}},
      {"storage", {"[[0, 0, 0], 1]", "[[0, 2, 1], 1]", "[[0, 1], 1]"}},
      {"whole", {"[1]", "[1, 2, 3]", "[-1, 2]", "[0, 0]", "[1.5, 2]", "[[1, 2]]", "1"}},
      {"leaves",
       {"[]", "[[0]]", "[[-3]]", "[[4]]", "[3]", "[[3], [3]", "[[]]", "[[9999999999999999999]]"}},
      {"tokens", {"[]", "[[0, 1]]", "[[0, 2, 1]]", "[[0, 1, 3], [0, 1, 2]]", "[[0, 1, 2, 3]]"}},
  };
  for (const auto& [key, values] : cases)
    for (const char* value : values) {
      INFO(key << " = " << value);
      CHECK_FALSE(refusal(with_value(key, value)).empty());
    }
  // Very long, or very deep.
  CHECK_FALSE(refusal(with_value("hidden", std::string(1000000, '['))).empty());
  std::string many = "[[0";
  for (int at = 0; at < 200000; ++at) many += ", 0";
  CHECK_FALSE(refusal(with_value("hidden", many + ", 32], 1]")).empty());
}

TEST_CASE("flat aggregation needs equal shards, and what k cuts in attention belongs to them") {
  Config config = gpt_input();
  config.aggregate.method = AggregateMethod::adasum;
  config.aggregate.algorithm = AggregateAlgorithm::flat;
  Plan plan = plan_of(config, Grid{1, 1, 2, {}, {}, {}}, 2);
  plan.replicas[1].attention = plan.replicas[0].attention == AttentionCut::heads
                                   ? AttentionCut::sequences
                                   : AttentionCut::heads;
  CHECK_FALSE(plan.alike());
  CHECK_THROWS_WITH(plan.check(), test::contains("flat"));
  plan.replicas[1].attention = plan.replicas[0].attention;
  CHECK(plan.alike());
  plan.check();
  recut(plan.replicas[1].hidden, {0, 8, 32});
  CHECK_FALSE(plan.alike());
  CHECK_THROWS_WITH(plan.check(), test::contains("flat"));
  plan.aggregate.algorithm = AggregateAlgorithm::gram;
  plan.check();
}

TEST_CASE("the leaves of a plan are those of its aggregation, and not too many") {
  Config config = gpt_input();
  config.batch.sequences = 64;
  config.aggregate.method = AggregateMethod::adasum;
  config.aggregate.leaves = 2;
  const Plan plan = plan_of(config, Grid{1, 1, 1, {}, {}, {}}, 32);
  plan.check();  // as many as there may be
  Plan other = plan;
  other.aggregate.method = AggregateMethod::mean;
  CHECK_THROWS_WITH(other.check(), test::contains("2 leaves per replica are for adasum only"));
  other = plan;
  other.aggregate.leaves = 1;
  CHECK_THROWS_WITH(other.check(), test::contains("have 2 leaves, and aggregate.leaves is 1"));
  other = plan;
  other.replicas.push_back(other.replicas.back());
  ++other.ranks;
  CHECK_THROWS_WITH(other.check(), test::contains("mesh.replicas = 33 with aggregate.leaves = 2"));
  for (const std::string& text : {other.text(), with_line(plan, "copies", "copies = 33\n")})
    CHECK_FALSE(refusal(text).empty());
}

TEST_CASE("copies of a replica are bounded, however long it is") {
  const Plan plan = small();
  const std::string ranks = with_line(plan, "ranks", "ranks = 16777216\n");
  CHECK_THAT(refusal(with_line(plan, "ranks", "ranks = 16777217\n")),
             test::contains("at most 16777216"));
  Plan other = plan;
  other.aggregate.gain_exponent = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH(other.check(), test::contains("aggregate.gain_exponent is nan"));
  const auto with_copies = [&](const std::string& count) {
    std::string text = ranks;
    const std::string line = "copies = 2\n";
    REQUIRE(text.find(line) != std::string::npos);
    text.replace(text.find(line), line.size(), "copies = " + count + "\n");
    return text;
  };
  CHECK(refusal(with_copies("2")).empty());
  CHECK_THAT(refusal(with_copies("131073")), test::contains("131073 copies of a replica"));
  // Within the number, and with a gigabyte of letters in all.
  std::string wide = with_copies("131072"), micros = "[[3";
  for (int at = 0; at < 5000; ++at) micros += ", 3";
  const auto first = wide.find("\nleaves = ") + 1;
  wide.replace(first, wide.find('\n', first) - first, "leaves = " + micros + "]]");
  CHECK_THAT(refusal(wide), test::contains("131072 copies of a replica"));
}

TEST_CASE("micro-batches of sizes that the plan does not list are cut in the same proportions") {
  const ReplicaPlan even = plan_of(gpt_input(), Grid{2, 1, 1, {}, {}, {}}).replicas[0];
  CHECK(even.tokens_of(5).sizes() == std::vector<index_t>{3, 2});  // the plan's own
  CHECK(even.tokens_of(8).sizes() == std::vector<index_t>{4, 4});
  CHECK(even.tokens_of(1).sizes() == std::vector<index_t>{1, 0});
  CHECK(even.tokens_of(0).sizes() == std::vector<index_t>{0, 0});
  Config config = gpt_input();
  config.batch.sequences = 8;
  const ReplicaPlan uneven = plan_of(config, Grid{3, 1, 1, {3, 0, 1}, {}, {}}).replicas[0];
  CHECK(uneven.tokens_of(8).sizes() == std::vector<index_t>{6, 0, 2});
  CHECK(uneven.tokens_of(4).sizes() == std::vector<index_t>{3, 0, 1});
  CHECK(uneven.tokens_of(100).sizes() == std::vector<index_t>{75, 0, 25});
  CHECK(uneven.tokens_of(100).name() == "tokens");
}

namespace {

/// What a run was made with, and its plan.
struct Before {
  Config config = gpt_input();
  Plan plan;
  Before() {
    set_grid(config, {2, 1, 1, {}, {}, {}}, 2);
    config.batch.sequences = 6;
    fill_computed_defaults(config, "input.toml");
    plan = make_plan(config, {4});
    // As if somebody had changed it on the way: no input says this.
    recut(plan.replicas[0].tokens.front(), {0, 0, 3});
  }
  /// The plan of a continuation in which `keys` are given, on so many ranks.
  [[nodiscard]] Plan continued(Config now, const std::vector<std::string>& keys,
                               int ranks = 4) const {
    Origins origins;
    for (const std::string& key : keys) origins[key] = {};
    now.aggregate.reference_batch = 0;  // as an input that does not give it
    fill_computed_defaults(now, "input.toml");
    return continued_plan(now, origins, {ranks}, plan, config);
  }
};

}  // namespace

TEST_CASE("a continued run keeps its plan, unless ranks or given keys say otherwise") {
  const Before before;
  CHECK(before.continued(before.config, {}) == before.plan);
  CHECK(before.continued(before.config, {"mesh.cuboid", "batch.sequences"}) == before.plan);
  Config now = before.config;
  now.optimizer.lr = 1;  // shapes nothing
  CHECK(before.continued(now, {"optimizer.lr"}) == before.plan);
  now.batch.micro = 1;
  CHECK(before.continued(now, {}) == before.plan);  // a default that has changed is no wish
  const Plan micro = before.continued(now, {"batch.micro"});
  CHECK(micro.replicas[0].leaves == std::vector<std::vector<index_t>>{{1, 1, 1}});
  now = before.config;
  set_grid(now, {1, 2, 1, {}, {}, {}}, 1);
  const Plan fewer = before.continued(now, {}, 2);
  CHECK(fewer.ranks == 2);
  CHECK(fewer.mesh().describe() == "1 x 2 x 1");
}

TEST_CASE("the reference batch and the leaves stay unless they are given") {
  const Before before;
  CHECK(before.plan.aggregate.reference_batch == 3);
  Config now = before.config;
  now.batch.sequences = 12;
  CHECK(before.continued(now, {"batch.sequences"}).aggregate.reference_batch == 3);
  CHECK(before.continued(now, {"batch.sequences"}).sequences() == 12);
  set_grid(now, {2, 1, 1, {}, {}, {}}, 1);
  CHECK(before.continued(now, {}, 2).aggregate.reference_batch == 3);
  now.aggregate.leaves = 4;
  now.aggregate.method = AggregateMethod::adasum;
  CHECK(before.continued(now, {"aggregate.method"}, 2).leaves_per_replica() == 1);
  CHECK(before.continued(now, {"aggregate.method", "aggregate.leaves"}, 2).leaves_per_replica() ==
        4);
  Config given = before.config;
  Origins origins{{"aggregate.reference_batch", {}}};
  given.aggregate.reference_batch = 5;
  CHECK(continued_plan(given, origins, {4}, before.plan, before.config).aggregate.reference_batch ==
        5);
}

TEST_CASE("other ranks aggregate as before, unless keys say otherwise") {
  Before before;
  AggregateConfig& then = before.config.aggregate;
  then.method = AggregateMethod::adasum;
  then.placement = AggregatePlacement::pre;
  then.algorithm = AggregateAlgorithm::flat;
  then.per = GroupBy::block;
  then.leaf = LeafRule::linear;
  then.gain_exponent = 1;
  before.config.optimizer.kind = OptimizerKind::sgd;
  before.plan = make_plan(before.config, {4});
  Config now = gpt_input();  // which says nothing of all that
  now.batch.sequences = 6;
  set_grid(now, {1, 2, 1, {}, {}, {}}, 1);
  const Plan other = before.continued(now, {}, 2);
  CHECK(other.mesh().describe() == "1 x 2 x 1");
  CHECK(other.optimizer == OptimizerKind::sgd);
  CHECK(other.aggregate.method == AggregateMethod::adasum);
  CHECK(other.aggregate.placement == AggregatePlacement::pre);
  CHECK(other.aggregate.algorithm == AggregateAlgorithm::flat);
  CHECK(other.aggregate.per == GroupBy::block);
  CHECK(other.aggregate.leaf == LeafRule::linear);
  CHECK(other.aggregate.gain_exponent == 1);
  now.aggregate.algorithm = AggregateAlgorithm::gram;
  const Plan given = before.continued(now, {"aggregate.algorithm"}, 2);
  CHECK(given.aggregate.algorithm == AggregateAlgorithm::gram);
  CHECK(given.aggregate.method == AggregateMethod::adasum);
}

TEST_CASE("an input that says nothing of a plan that stays gets its values") {
  const Before before;
  Config now = gpt_input();
  now.batch.sequences = 6;
  now.precision.loss_scale = 64;  // no plan has it
  fill_computed_defaults(now, "input.toml");
  CHECK(keep_values(now, {}, 4, before.plan, before.config));
  CHECK(now.mesh.replicas == 2);
  CHECK(now.mesh.cuboid == before.config.mesh.cuboid);
  CHECK(now.aggregate.reference_batch == 3);
  CHECK(now.precision.loss_scale == 64);
  now.batch.micro = 1;
  CHECK_FALSE(keep_values(now, {{"batch.micro", {}}}, 4, before.plan, before.config));
  CHECK(now.batch.micro == 1);
}

TEST_CASE("more leaves than adasum combines are a fault of the input, also on other ranks") {
  Before before;
  before.config.aggregate.method = AggregateMethod::adasum;
  before.config.aggregate.leaves = 8;
  before.config.batch.sequences = 128;
  set_grid(before.config, {1, 1, 1, {}, {}, {}}, 8);
  before.plan = make_plan(before.config, {8});
  Config now = before.config;
  set_grid(now, {1, 1, 1, {}, {}, {}}, 16);
  try {
    (void)before.continued(now, {"mesh.replicas"}, 16);
    FAIL("128 leaves");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::config);
    CHECK_THAT(error.what(), test::contains("mesh.replicas = 16 with aggregate.leaves = 8"));
  }
}
