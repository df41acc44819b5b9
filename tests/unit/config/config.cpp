// The input: every kind of fault with its place and hint, presets, computed defaults, round trips.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "config/config_load.hpp"
#include "config/config_schema.hpp"
#include "config/defaults.hpp"
#include "config/explain.hpp"
#include "config/presets.hpp"
#include "core/levenshtein.hpp"
#include "support/catch.hpp"

namespace t3d {
namespace {

const std::string kSmall =
    "version = 1\n[run]\nsteps = 10\n[model]\npreset = \"gpt-tiny\"\n[data]\ntrain = \"a.bin\"\n"
    "[batch]\nsequences = 8\n";

/// The message of all faults, or "" when there is none.
std::string faults_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    (void)parse_config(text, "in.toml", overrides);
  } catch (const ConfigErrors& errors) {
    CHECK(errors.code() == ExitCode::config);
    return errors.what();
  }
  return "";
}

/// With these --set values instead of more text.
std::string faults_with(const std::vector<std::string>& overrides) {
  return faults_of(kSmall, overrides);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string source_file(const std::string& path) {
  return (std::filesystem::path(T3D_TEST_SOURCE).parent_path() / path).string();
}

Config small_with(const std::vector<std::string>& overrides) {
  return parse_config(kSmall, "in.toml", overrides);
}

}  // namespace

TEST_CASE("edit distance counts changes and swaps") {
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("heads", "heads") == 0);
  CHECK(edit_distance("haeds", "heads") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("ab", "ba") == 1);
  const std::vector<std::string> words{"layers", "heads", "hidden"};
  CHECK(nearest_word("layer", words) == "layers");
  CHECK(nearest_word("hiden", words) == "hidden");
  CHECK_FALSE(nearest_word("optimizer", words).has_value());
  CHECK_FALSE(nearest_word("x", words).has_value());
}

TEST_CASE("the smallest input is enough") {
  const Config config = parse_config(kSmall, "some/where/first.toml");
  CHECK(config.run.name == "first");
  CHECK(config.run.dir == "runs/first");
  CHECK(config.checkpoint.dir == "runs/first/ckpt");
  CHECK(config.model.layers == 4);
  CHECK(config.model.kv_heads == 4);
  CHECK(config.model.ffn == 1024);
  CHECK(config.data.train == std::vector<std::string>{"a.bin"});
  CHECK(planned_steps(config) == 10);
}

TEST_CASE("an unknown key names the nearest") {
  const std::string text = kSmall + "[optimizer]\nlearning_rat = 1\nbeta_1 = 0.5\n";
  const std::string faults = faults_of(text);
  CHECK(contains(faults, "in.toml:11:1: there is no key optimizer.learning_rat"));
  CHECK(contains(faults,
                 "in.toml:12:1: there is no key optimizer.beta_1; did you mean optimizer.beta1?"));
  // The same name in another table.
  CHECK(contains(faults_of(kSmall + "micro = 2\n[log]\nlr = 3\n"), "did you mean optimizer.lr?"));
  CHECK(contains(faults_of("steps = 3\n" + kSmall),
                 "in.toml:1:1: there is no key steps above the tables; did you mean run.steps?"));
  CHECK(contains(faults_of(kSmall + "[model.attention]\nx = 1\n"), "no key model.attention"));
}

TEST_CASE("an unknown table is told once") {
  const std::string faults = faults_of(kSmall + "[optimiser]\nlr = 1\nbeta = 2\n");
  CHECK(faults == "in.toml:10:1: there is no table [optimiser]; did you mean optimizer?");
  CHECK(contains(faults_of("model = 5\n[run]\nsteps = 1\n"), "in.toml:1:1: model must be a table"));
}

TEST_CASE("wrong types say what is needed and what came") {
  CHECK(faults_of(kSmall + "micro = \"two\"\n") ==
        "in.toml:10:1: batch.micro must be an integer, not the string \"two\"");
  CHECK(contains(faults_of(kSmall + "micro = 1.5\n"), "must be an integer, not the number 1.5"));
  CHECK(contains(faults_of(kSmall + "micro = 2024-01-01\n"), "not a date or time"));
  CHECK(contains(faults_with({"log.json=[true]"}), "not a list of 1"));
  CHECK(contains(faults_of(kSmall + "[log]\njson = 1\n"), "log.json must be true or false"));
  CHECK(contains(faults_of(kSmall + "[optimizer]\nlr = \"x\"\n"), "optimizer.lr must be a number"));
  CHECK(contains(faults_of(kSmall + "[optimizer]\nlr = nan\n"), "write a finite number"));
  CHECK(contains(faults_of("[run.name]\nx = 1\n"), "run.name must be a string, not a table"));
  CHECK(contains(faults_with({"data.valid=[1]"}), "data.valid must be a string or a list"));
  CHECK(contains(faults_with({"mesh.cuboid=[1,2]"}), "three integers [p, q, r], not a list of 2"));
  CHECK(contains(faults_with({"mesh.cuboid=[1,0,2]"}), "mesh.cuboid cannot be 0"));
  CHECK(contains(faults_with({"debug.threads=5000"}), "allowed: 0 <= x <= 4096"));
  CHECK(contains(faults_with({"model.layers=99999999999"}), "model.layers cannot be"));
}

TEST_CASE("a float that is a whole number counts as one") {
  CHECK(small_with({"run.steps=1e5"}).run.steps == 100000);
  CHECK(small_with({"optimizer.lr=1"}).optimizer.lr == 1.0);
}

TEST_CASE("all faults are listed at once, in the order of the file") {
  const std::string text =
      "version = 2\n"         // 1
      "[run]\n"               // 2
      "steps = -1\n"          // 3
      "[model]\n"             // 4
      "layers = 2\n"          // 5
      "hidden = 130\n"        // 6
      "heads = 4\n"           // 7
      "context = 64\n"        // 8
      "  dropout = 1.0\n"     // 9
      "norm = \"rmsnrm\"\n"   // 10
      "[batch]\n"             // 11
      "[precision]\n"         // 12
      "compute = \"fp64\"\n"  // 13
      "backend = \"cpu\"\n";  // 14
  const std::string expected =
      "in.toml:1:1: version cannot be the integer 2; this program reads inputs of version = 1\n"
      "in.toml:3:1: run.steps cannot be -1; allowed: 0 <= x <= 1e12\n"
      "in.toml:6:1: model.hidden = 130 is not a multiple of model.heads = 4; the nearest are 128 "
      "and 132; or write model.head_size\n"
      "in.toml:9:3: model.dropout cannot be 1; allowed: 0 <= x < 1\n"
      "in.toml:10:1: model.norm cannot be \"rmsnrm\"; allowed: layernorm, rmsnorm; did you mean "
      "\"rmsnorm\"?\n"
      "in.toml:11:1: batch.sequences is missing; write it\n"
      "in.toml:14:1: precision.compute = \"fp64\" needs the reference operators; backend = "
      "\"reference\" or \"auto\"\n"
      "in.toml: data.train is missing; write it\n"
      "--set model.headz: there is no key model.headz; did you mean model.heads?";
  CHECK(faults_of(text, {"model.headz=3"}) == expected);
}

TEST_CASE("text that is not TOML has its line") {
  CHECK(contains(faults_of("[run]\nsteps = = 3\n"), "in.toml:2:"));
  CHECK(contains(faults_of("[run]\nsteps = 1\nsteps = 2\n"), "in.toml:3:"));
  CHECK(contains(faults_of("[run\n"), "this is not TOML"));
  CHECK(contains(faults_of("[.run]\n"), "in.toml:1:2: this is not TOML"));
  CHECK(contains(faults_of("[run]\nname = \"\xff\"\n"), "in.toml:2:"));
  // Letters where blanks may be, which the library takes for impossible: preset ubsan sees it.
  CHECK(contains(faults_of("version = 1L\u01bb\n"), "in.toml:1:"));
  CHECK(contains(faults_of("[run]\nname = \"\"\"a\\\n\u00a7\"\"\"\n"),
                 "in.toml: data.train is missing"));
  CHECK(contains(faults_of(""), "in.toml: data.train is missing"));
}

TEST_CASE("a missing file is no input") {
  for (const char* path : {"/nonexistent/in.toml", "/tmp", "/dev/null"}) {
    try {
      (void)load_config(path);
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::no_input);
      CHECK(contains(error.what(), path));
    }
  }
}

TEST_CASE("--set wins, takes bare words, and is named in faults") {
  const Config config = small_with({"model.layers=7", "run.name=night run", "data.train=/a/b*.bin",
                                    "mesh.cuboid=[1, 2, 3]", "log.json=false", "run.dir=2024",
                                    "optimizer.kind=sgd", "data.valid=[\"x\", \"y\"]"});
  CHECK(config.model.layers == 7);
  CHECK(config.run.name == "night run");
  CHECK(config.run.dir == "2024");
  CHECK(config.data.train == std::vector<std::string>{"/a/b*.bin"});
  CHECK(config.data.valid == std::vector<std::string>{"x", "y"});
  CHECK(config.mesh.cuboid == std::array<index_t, 3>{1, 2, 3});
  CHECK_FALSE(config.mesh.cuboid_auto);
  CHECK_FALSE(config.log.json);
  CHECK(config.optimizer.kind == OptimizerKind::sgd);
  CHECK(small_with({"mesh.cuboid=[1,1,1]", "mesh.cuboid=auto"}).mesh.cuboid_auto);

  CHECK(contains(faults_with({"model.layers"}), "--set model.layers: there is no '='"));
  CHECK(contains(faults_with({"layers=3"}), "--set layers: the key has no table"));
  CHECK(contains(faults_with({"model.layers="}), "there is no value"));
  CHECK(contains(faults_with({"init.from="}), "--set 'init.from=\"\"'"));
  CHECK(!contains(faults_with({"init.from=\"\""}), "init.from"));
  CHECK(contains(faults_with({"mesh.cuboid=[1,2"}), "--set mesh.cuboid: this is not TOML"));
  CHECK(contains(faults_with({"modl.layers=3"}), "there is no table [modl]; did you mean model?"));
  CHECK(
      contains(faults_with({"model.layers=many"}), "must be an integer, not the string \"many\""));
  CHECK(contains(faults_with({"optimizer.kind=adam"}), "did you mean \"adamw\"?"));
  // A value cannot smuggle in a second key.
  CHECK(small_with({"data.tokenizer=3\nx = 1"}).data.tokenizer == "3\nx = 1");
}

TEST_CASE("names and paths of the run are one line of UTF-8") {
  CHECK(small_with({"run.dir=\u00fcber/\u4e16"}).checkpoint.dir == "\u00fcber/\u4e16/ckpt");
  for (const char* key : {"run.name", "run.dir", "checkpoint.dir", "checkpoint.restart"}) {
    CHECK(contains(faults_with({key + std::string("=a\nb")}), "cannot be \"a\\x0Ab\""));
    CHECK(contains(faults_with({key + std::string("=\"a\\tb\"")}), "it has a control character"));
    CHECK(contains(faults_with({key + std::string("=r\xff")}), "this is not UTF-8"));
  }
  CHECK(contains(faults_with({"data.train=\xc3(.h5"}), "--set data.train: this is not UTF-8"));
  // The name of the file is the default of run.name, and stands in the origins of its keys.
  const std::vector<std::string> named{"run.name=x"};
  try {
    (void)parse_config(kSmall, "in\xff.toml");
    FAIL("no error");
  } catch (const ConfigErrors& errors) {
    CHECK(contains(errors.what(), "in\\xFF.toml: run.name cannot be \"in\\xFF\""));
    CHECK(contains(errors.what(), "write run.name"));
  }
  Origins origins;
  const Config config = parse_config(kSmall, "in\xff\n.toml", named, &origins);
  CHECK(config_differences(config, parse_config(resolved_text(config, origins), "x")).empty());
}

TEST_CASE("adapters do not train the rows of new tokens") {
  const std::string faults = faults_with({"lora.rank=4", "init.grow_vocab=true"});
  CHECK(contains(faults, "init.grow_vocab"));
  CHECK(faults_with({"lora.rank=0", "init.grow_vocab=true"}).find("random") == std::string::npos);
}

TEST_CASE("very many faults are answered at once, the first with hints") {
  std::string text = kSmall + "[log]\n";
  for (int n = 1; n <= 100000; ++n) text += fmt::format("every_step{} = 1\n", n);
  const auto start = std::chrono::steady_clock::now();
  const std::string faults = faults_of(text);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
  CHECK(contains(faults, "in.toml:11:1: there is no key log.every_step1; did you mean "));
  CHECK(contains(faults, "in.toml:60:1: there is no key log.every_step50; did you mean "));
  CHECK(faults.ends_with("\n... and 99950 more"));
  text = kSmall;
  for (int n = 1; n <= 60; ++n) text += fmt::format("[optimizer{}]\n", n);
  CHECK(contains(faults_of(text),
                 "in.toml:59:1: there is no table [optimizer50]; did you mean optimizer?"));
  // Long names are neither compared nor shown whole.
  const std::string long_name(1 << 20, 'k');
  CHECK(faults_of(kSmall + long_name + " = 1\n").size() < 1000);
  CHECK(faults_of(kSmall + "micro = \"" + long_name + "\"\n").size() < 1000);
}

TEST_CASE("keys and words of earlier versions are read as those of today") {
  const Config config =
      parse_config(kSmall + "[aggregate]\nmethod = \"adasum\"\ntransport = \"rvh\"\n", "in.toml");
  CHECK(config.aggregate.algorithm == AggregateAlgorithm::gram);
  CHECK(small_with({"aggregate.transport=flat"}).aggregate.algorithm == AggregateAlgorithm::flat);
  CHECK(small_with({"aggregate.algorithm=rvh"}).aggregate.algorithm == AggregateAlgorithm::gram);
  CHECK(contains(faults_with({"aggregate.transport=rwh"}), "aggregate.algorithm cannot be"));
}

TEST_CASE("keys and words that are no longer in use are notes and no faults") {
  const Config config = parse_config(kSmall +
                                         "[balance]\npredictor = \"narx\"\ncoarse_step = 2\n"
                                         "kind = \"lbbsp_numeric\"\n",
                                     "in.toml", {"balance.predictor=arx"});
  CHECK(config.balance.kind == BalanceKind::model);
  CHECK(config.notes ==
        std::vector<std::string>{
            "balance.coarse_step is no longer read: the rule lbbsp_numeric is no longer there",
            "balance.kind = \"lbbsp_numeric\" is of an earlier version and is read as \"model\"",
            "balance.predictor is no longer read: speeds are measured, and none is predicted"});
  CHECK(unused_input(config, 2) == config.notes);
  // What is written later wins, and takes its note along.
  CHECK(parse_config(kSmall + "[balance]\nkind = \"lbbsp_numeric\"\n", "in.toml",
                     {"balance.kind=off"})
            .notes.empty());
  CHECK(contains(faults_with({"balance.kind=lbbsp"}), "balance.kind cannot be"));
  CHECK(contains(faults_with({"balance.predictors=narx"}), "there is no key balance.predictors"));
}

TEST_CASE("presets fill the model, keys win over them") {
  const Config gpt2 = small_with({"model.preset=gpt2-124m"});
  CHECK(gpt2.model.hidden == 768);
  CHECK(gpt2.model.vocab == 50257);
  CHECK(gpt2.model.ffn == 3072);
  const Config llama = small_with({"model.preset=llama3-8b", "model.layers=2"});
  CHECK(llama.model.layers == 2);
  CHECK(llama.model.kv_heads == 8);
  CHECK(llama.model.norm == NormKind::rms);
  CHECK_FALSE(llama.model.tied_embeddings);
  // An explicit value equal to the general default also wins over the preset.
  CHECK(small_with({"model.preset=llama2-7b", "model.norm=layernorm"}).model.norm ==
        NormKind::layer);
  // swiglu: 8/3 of 256 = 682.67, up to 704.
  CHECK(small_with({"model.activation=swiglu"}).model.ffn == 704);
  CHECK(small_with({"model.activation=swiglu", "model.hidden=96"}).model.ffn == 256);
  const std::string faults = faults_with({"model.preset=gpt2-124"});
  CHECK(contains(faults, "--set model.preset: model.preset cannot be \"gpt2-124\""));
  CHECK(contains(faults, "did you mean \"gpt2-124m\"?"));
  CHECK_FALSE(contains(faults, "missing"));
  for (const Preset& preset : presets()) {
    CHECK(faults_with({"model.preset=" + preset.name}).empty());
  }
}

TEST_CASE("rules between keys") {
  CHECK(contains(faults_with({"model.kv_heads=3"}), "not a multiple of model.kv_heads = 3"));
  CHECK(contains(faults_with({"model.position=rope", "model.hidden=20"}), "even head size"));
  CHECK(contains(faults_with({"run.steps=0"}), "the run has no length"));
  for (const char* name : {"run.name='..'", "run.name='a/../..'", "run.name='.'"})
    CHECK(contains(faults_with({name}), "would not be one below runs"));
  CHECK(contains(faults_with({"schedule.warmup_steps=10"}), "not below the run's 10 steps"));
  CHECK(faults_with({"schedule.warmup_steps=9"}).empty());
  CHECK(contains(faults_with({"mesh.replicas=9"}), "leaves some of 9 replicas without work"));
  CHECK(contains(faults_with({"mesh.replicas=3", "batch.micro=4"}), "share of 3 sequences"));
  CHECK(faults_with({"mesh.replicas=3", "batch.micro=3"}).empty());
  CHECK(contains(faults_with({"eval.every_steps=5"}), "needs data.valid"));
  CHECK(contains(faults_with({"mesh.outputs=[1,2]"}), "needs an explicit mesh.cuboid"));
  CHECK(contains(faults_with({"hetero.speeds=file"}),
                 "hetero.speeds: hetero.speeds = \"file\" needs"));
  CHECK(faults_with({"hetero.speeds=file", "hetero.file=a.json"}).empty());
  for (const char* wish : {"2:", ":a", "x:a", "2", "0:same", "-1:same", "2 :same"})
    CHECK(contains(faults_with({fmt::format("debug.replan=[\"1:same\", \"{}\"]", wish)}),
                   fmt::format("debug.replan: debug.replan: \"{}\" is not STEP:FILE", wish)));
  const std::string cuboid = "mesh.cuboid=[1,2,3]";
  CHECK(contains(faults_with({cuboid, "mesh.outputs=[1]"}), "q = 2 needs one for each part"));
  CHECK(contains(faults_with({cuboid, "mesh.contractions=[0,0,0]"}), "are all 0"));
  CHECK(contains(faults_with({cuboid, "mesh.tokens=[-1]"}), "mesh.tokens cannot be -1"));
  CHECK(faults_with({cuboid, "mesh.tokens=[1]", "mesh.outputs=[0,1.5]"}).empty());
}

TEST_CASE("replicas = auto leaves nothing to a number that was written before it") {
  const std::string two = "mesh.replicas=2", open = "mesh.replicas=auto";
  CHECK(small_with({two, open}).mesh.replicas == 1);
  CHECK(small_with({two, open}).aggregate.reference_batch == 8);
  CHECK_FALSE(small_with({open, two}).mesh.replicas_auto);
  CHECK(contains(faults_with({open, "mesh.place=[0]"}), "mesh.place are both given"));
  const std::string needs = "aggregate.reference_batch must be written";
  for (const std::string method : {"aggregate.method=sum", "aggregate.method=adasum"}) {
    CHECK(contains(faults_with({open, method}), needs));
    CHECK(faults_with({open, method, "aggregate.reference_batch=4"}).empty());
    CHECK(faults_with({two, method}).empty());
  }
}

TEST_CASE("a cuboid for each replica") {
  const std::string two = "mesh.replicas=2", cuboids = "mesh.cuboids=[2,1,1, 1,2,2]";
  CHECK(faults_with({two, cuboids}).empty());
  CHECK(small_with({two, cuboids}).mesh.cuboids == std::vector<int>{2, 1, 1, 1, 2, 2});
  CHECK(contains(faults_with({two, "mesh.cuboids=[2,1,1]"}), "has 3 numbers"));
  CHECK(contains(faults_with({cuboids}), "mesh.replicas = 1 needs p, q, r for each: 3 numbers"));
  CHECK(contains(faults_with({two, "mesh.cuboids=[2,1,1, 1,0,2]"}), "mesh.cuboids cannot be 0"));
  CHECK(contains(faults_with({two, cuboids, "mesh.cuboid=[2,1,1]"}), "are both given"));
  CHECK(contains(faults_with({two, cuboids, "mesh.outputs=[1,2]"}),
                 "mesh.outputs does not go with mesh.cuboids"));
  const std::string adasum = "aggregate.method=adasum", post = "aggregate.placement=post";
  CHECK(faults_with({two, cuboids, adasum}).empty());
  const std::string flat = "aggregate.algorithm=flat";
  CHECK(contains(faults_with({two, cuboids, adasum, post, flat}), "needs equal cuboids"));
  CHECK(faults_with({two, "mesh.cuboids=[2,1,1, 2,1,1]", adasum, post, flat}).empty());
  // All at once.
  const std::string many = faults_with({two, "mesh.cuboids=[1]", "mesh.cuboid=[1,1,1]"});
  CHECK((contains(many, "both given") && contains(many, "6 numbers")));
}

TEST_CASE("tokens and steps end the run, whichever comes first") {
  // gpt-tiny has a context of 256: 2048 tokens a step.
  CHECK(planned_steps(small_with({"run.steps=0", "run.tokens=4097"})) == 3);
  CHECK(planned_steps(small_with({"run.tokens=4096"})) == 2);
  CHECK(planned_steps(small_with({"run.tokens=1e9"})) == 10);
}

TEST_CASE("--defaults reads back as the default Config") {
  const std::string minimum =
      "\n[run]\nsteps = 1\n[model]\nlayers = 1\nhidden = 1\nheads = 1\ncontext = 1\n"
      "[data]\ntrain = \"a\"\n[batch]\nsequences = 1\n";
  const std::vector<std::string> required{"run.steps=1",      "model.layers=1",  "model.hidden=1",
                                          "model.heads=1",    "model.context=1", "data.train=a",
                                          "batch.sequences=1"};
  const Config expected = parse_config(minimum, "in.toml");
  const Config actual = parse_config(defaults_text(), "in.toml", required);
  CHECK(config_differences(expected, actual).empty());
  // Every key is shown, and nothing but the required ones is missing.
  for (const Key& key : config_keys()) CHECK(contains(defaults_text(), key.name + " ="));
}

TEST_CASE("resolved text reads back as the same Config") {
  const std::vector<std::string> overrides{"model.preset=llama3-8b",
                                           "mesh.cuboid=[2,3,5]",
                                           "mesh.tokens=[1,0.1]",
                                           "mesh.place=[1,0]",
                                           "optimizer.lr=0.1234567890123",
                                           "run.tokens=1e15",
                                           "data.train=[\"a\\\\b\", \"c \\\" d\\t\"]",
                                           "checkpoint.verify=false",
                                           "run.name=\u00fcber",
                                           "debug.watchdog_seconds=1e-3"};
  Origins origins;
  const Config config = parse_config(kSmall, "in.toml", overrides, &origins);
  const std::string text = resolved_text(config, origins);
  const Config again = parse_config(text, "resolved.toml");
  CHECK(config_differences(config, again).empty());
  CHECK(again.optimizer.lr == config.optimizer.lr);
  CHECK(again.data.train == config.data.train);
  CHECK(contains(text, "steps = 10  # in.toml:3:1"));
  CHECK(contains(text, "layers = 32  # preset llama3-8b"));
  CHECK(contains(text, "# --set mesh.cuboid"));
  CHECK(contains(text, "dir = \"runs/\u00fcber\"  # computed"));
  CHECK(contains(text, "beta2 = 0.95  # default"));
  CHECK(config_differences(config, small_with({})).size() > 10);
}

namespace {

/// Null for a choice.
const void* address_of(const Slot& slot) {
  return std::visit(
      [](const auto& place) -> const void* {
        if constexpr (std::is_pointer_v<std::decay_t<decltype(place)>>)
          return place;
        else
          return nullptr;
      },
      slot);
}

/// Each word is kept, and changes no other key.
void check_words(const Key& key) {
  for (const std::string& word : key.words) {
    Config config;
    const WordSlot slot = std::get<WordSlot>(key.slot(config));
    const bool other = slot.get() != word;
    slot.set(word);
    CHECK(slot.get() == word);
    CHECK(std::ssize(config_differences(Config(), config)) == (other ? 1 : 0));
  }
}

}  // namespace

TEST_CASE("every key of the schema has its own place, a help and a table") {
  std::set<std::string> names;
  std::set<const void*> places;
  Config config;
  for (const Key& key : config_keys()) {
    CHECK(names.insert(key.full_name()).second);
    const void* place = address_of(key.slot(config));
    if (place == nullptr)
      check_words(key);
    else if (key.name != "cuboid")
      CHECK(places.insert(place).second);
    CHECK(key.help.size() > 10);
    CHECK(find_key(key.full_name()) == &key);
  }
  for (const TableHelp& table : config_tables()) CHECK_FALSE(keys_of(table.name).empty());
}

TEST_CASE("--explain") {
  CHECK(contains(explain("model.heads"), "Attention heads"));
  CHECK(contains(explain("optimizer.beta2"), "0 <= x < 1"));
  CHECK(contains(explain("schedule.kind"), "constant, linear, cosine, wsd"));
  CHECK(contains(explain("clip_norm"), "optimizer.clip_norm"));
  CHECK(contains(explain("mesh"), "mesh.gather_budget_mib"));
  try {
    (void)explain("model.haeds");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::usage);
    CHECK(contains(error.what(), "did you mean model.heads?"));
  }
}

TEST_CASE("the example inputs are good") {
  index_t found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_file("inputs"))) {
    if (entry.path().extension() != ".toml") continue;
    INFO(entry.path().string());
    CHECK_NOTHROW((void)load_config(entry.path().string()));
    ++found;
  }
  CHECK(found >= 3);
}

TEST_CASE("docs/02-input.md is what --input-reference prints") {
  std::ifstream file(source_file("docs/02-input.md"));
  std::ostringstream text;
  text << file.rdbuf();
  CHECK(text.str() == input_reference());
}

}  // namespace t3d
