// The command line: what each form means, and that usage errors end with 64.
#include "app/cli.hpp"

#include <limits>

#include "config/toml_input.hpp"
#include "core/error.hpp"
#include "support/catch.hpp"

namespace t3d {
namespace {

using Action = CommandLine::Action;
using Arguments = std::vector<std::string>;

CommandLine parse(const Arguments& words) {
  std::vector<const char*> argv{"transformer3d"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  return parse_command_line(static_cast<int>(argv.size()), argv.data());
}

std::string usage_error(const Arguments& words) {
  try {
    (void)parse(words);
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::usage);
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the main job") {
  const CommandLine line = parse({"in.toml", "--set", "a.b=1", "-q", "--set", "c.d=[1, 2]", "-r",
                                  "never", "-d", "/scratch/x"});
  CHECK(line.action == Action::train);
  CHECK(line.input == "in.toml");
  CHECK(line.overrides ==
        Arguments{"a.b=1", "c.d=[1, 2]", "run.dir=/scratch/x", "checkpoint.restart=never"});
  // What looks like TOML is a path all the same.
  for (const std::string path : {"\"q\"", "[1]", "'x'", " y", "a\\\"b"}) {
    const CommandLine quoted = parse({"in.toml", "-d", path, "-r", path});
    CHECK(parse_override(quoted.overrides.at(0)).value.text == path);
    CHECK(parse_override(quoted.overrides.at(1)).value.text == path);
  }
  CHECK(line.quiet);
  CHECK_FALSE(parse({"--set", "a.b=1", "in.toml"}).quiet);
  CHECK(parse({"--set", "a.b=1", "in.toml"}).input == "in.toml");
  CHECK(parse({"--set=mesh.cuboid=[1,2,3]", "in.toml"}).overrides ==
        Arguments{"mesh.cuboid=[1,2,3]"});
}

TEST_CASE("a dry run, with and without a number") {
  for (const Arguments& words : {Arguments{"-n", "in.toml"}, Arguments{"in.toml", "--dry-run"}}) {
    const CommandLine line = parse(words);
    CHECK(line.action == Action::dry_run);
    CHECK(line.input == "in.toml");
    CHECK_FALSE(line.dry_run_ranks.has_value());
  }
  for (const Arguments& words :
       {Arguments{"-n", "64", "in.toml"}, Arguments{"in.toml", "--dry-run", "64"},
        Arguments{"in.toml", "--dry-run=64"}}) {
    CHECK(parse(words).dry_run_ranks == 64);
    CHECK(parse(words).input == "in.toml");
  }
  for (const char* count : {"0", "16777217", "999999999", "99999999999999999999999"}) {
    CHECK(contains(usage_error({"in.toml", "-n", count}), "from 1 to 16777216"));
    CHECK(contains(usage_error({"-n", count, "in.toml"}), "from 1 to 16777216"));
  }
  CHECK(parse({"in.toml", "-n", "16777216"}).dry_run_ranks == 16777216);
  CHECK(contains(usage_error({"in.toml", "--dry-run=many"}), "number of ranks"));
}

TEST_CASE("texts to print") {
  CHECK(contains(parse({"--version"}).text, "transformer3d "));
  CHECK(contains(parse({"--help"}).text, "--dry-run"));
  CHECK(contains(parse({"generate", "--help"}).text, "--temperature"));
  CHECK(contains(parse({"generate", "--help"}).text, "transformer3d generate [OPTIONS]"));
  CHECK(contains(parse({"--defaults"}).text, "[optimizer]"));
  CHECK(contains(parse({"--explain", "model.heads"}).text, "Attention heads"));
  CHECK(contains(parse({"--input-reference"}).text, "# The input file"));
  CHECK(parse({"--defaults"}).action == Action::print);
  CHECK(contains(usage_error({"--explain", "modle"}), "did you mean model?"));
}

TEST_CASE("tokenize") {
  const CommandLine line = parse({"tokenize", "a.txt", "b.txt", "-o", "out/x", "--kind", "bpe",
                                  "--vocab", "1000", "--valid", "0.1"});
  CHECK(line.action == Action::tokenize);
  CHECK(line.tokenize.inputs == Arguments{"a.txt", "b.txt"});
  CHECK(line.tokenize.prefix == "out/x");
  CHECK(line.tokenize.options.kind == "bpe");
  CHECK(line.tokenize.options.vocab == 1000);
  CHECK(line.tokenize.options.valid_fraction == 0.1);
  CHECK(parse({"tokenize", "-o", "x", "a"}).tokenize.options.kind == "bytes");
  CHECK_FALSE(usage_error({"tokenize", "a.txt"}).empty());
  CHECK_FALSE(usage_error({"tokenize", "-o", "x"}).empty());
  CHECK_FALSE(usage_error({"tokenize", "a", "-o", "x", "--kind", "word"}).empty());
  CHECK_FALSE(usage_error({"tokenize", "a", "-o", "x", "--valid", "1"}).empty());
  CHECK_FALSE(usage_error({"tokenize", "a", "-o", "x", "--vocab", "many"}).empty());
}

TEST_CASE("eval, generate, inspect") {
  const CommandLine eval = parse({"eval", "ckpt", "t.h5", "--sequences", "5", "--set", "a.b=c"});
  CHECK(eval.action == Action::eval);
  CHECK(eval.eval.checkpoint == "ckpt");
  CHECK(eval.eval.token_file == "t.h5");
  CHECK(eval.eval.sequences == 5);
  CHECK(eval.overrides == Arguments{"a.b=c"});
  const CommandLine generate =
      parse({"generate", "ckpt", "--prompt", "Once upon", "--tokens", "9", "--temperature", "0.7",
             "--top-k", "40", "--top-p", "0.9", "--greedy", "--seed", "-3"});
  CHECK(generate.action == Action::generate);
  CHECK(generate.generate.prompts == std::vector<std::string>{"Once upon"});
  CHECK(generate.generate.tokens == 9);
  CHECK(generate.generate.temperature == 0.7);
  CHECK(generate.generate.top_k == 40);
  CHECK(generate.generate.top_p == 0.9);
  CHECK(generate.generate.greedy);
  CHECK(generate.generate.seed == -3);
  const auto seed = [](const char* text) {
    return parse({"generate", "ckpt", "--seed", text}).generate.seed;
  };
  CHECK(seed("9223372036854775807") == std::numeric_limits<std::int64_t>::max());
  CHECK(seed("-9223372036854775808") == std::numeric_limits<std::int64_t>::min());
  for (const char* text :
       {"9223372036854775808", "-9223372036854775809", "1e3", "99999999999999999999"})
    CHECK(contains(usage_error({"generate", "ckpt", "--seed", text}), "is not an integer"));
  CHECK(parse({"inspect", "ckpt", "--verify"}).inspect.verify);
  CHECK(parse({"status", "a", "b"}).status.dirs == Arguments{"a", "b"});
  CHECK(parse({"status", "--json", "a"}).status.json);
  CHECK(parse({"status", "a"}).action == Action::status);
  CHECK_FALSE(usage_error({"eval", "ckpt"}).empty());
  CHECK(parse({"generate", "ckpt", "--temperature", "0"}).generate.temperature == 0);
  CHECK_FALSE(usage_error({"generate", "ckpt", "--temperature", "-1"}).empty());
  CHECK_FALSE(usage_error({"generate", "ckpt", "--top-p", "1.5"}).empty());
  CHECK_FALSE(usage_error({"inspect"}).empty());
  CHECK_FALSE(usage_error({"status"}).empty());
  CHECK(parse({"report", "a", "b"}).report.dirs == Arguments{"a", "b"});
  CHECK(parse({"report", "a"}).report.output == "report.html");
  CHECK(parse({"report", "a", "-o", "x.html"}).report.output == "x.html");
  CHECK(parse({"report", "a"}).action == Action::report);
  CHECK_FALSE(usage_error({"report"}).empty());
}

TEST_CASE("simulate, and times with units") {
  const CommandLine line = parse({"simulate", "p.json", "--trace", "t.csv", "--runs", "7",
                                  "--policy", "copies=2,spares=1", "--policy", "sizing=wait",
                                  "--deadline", "1.5h", "-o", "out", "--json"});
  CHECK(line.action == Action::simulate);
  CHECK(line.simulate.plan == "p.json");
  CHECK(line.simulate.runs == 7);
  CHECK(line.simulate.policies == Arguments{"copies=2,spares=1", "sizing=wait"});
  CHECK(line.simulate.deadline_seconds == 5400);
  CHECK(parse({"simulate", "p", "--deadline", "90s"}).simulate.deadline_seconds == 90);
  CHECK(parse({"simulate", "p", "--deadline", "2d"}).simulate.deadline_seconds == 2 * 86400);
  for (const char* bad : {"h", "40", "-1h", "0", "1 h", "1w", "nan", "inf", "1e99d"})
    CHECK(usage_error({"simulate", "p", "--deadline", bad}) != "");
}

TEST_CASE("empty names, and lists with an empty part") {
  for (const Arguments& words :
       {Arguments{"calibrate", "-o", ""}, Arguments{"calibrate", "--output="},
        Arguments{"calibrate", "--add", ""}, Arguments{"plan", "a.toml", "-o", ""},
        Arguments{"simulate", "a.json", "-o", ""}, Arguments{"scaling", "a.toml", "-o", ""},
        Arguments{"report", "run", "-o", ""}, Arguments{"probe", "a.toml", "-o", ""},
        Arguments{"a.toml", "-d", ""}})
    CHECK(contains(usage_error(words), "what stands behind it is empty"));
  // The parser drops empty parts, and takes the next word where nothing is left.
  for (const char* list : {",", "h100,", ",h100", "h100,,a100-40g"})
    CHECK(contains(usage_error({"calibrate", "--preset", list, "-o", "c.toml"}),
                   "--preset: a part of the list '" + std::string(list) + "' is empty"));
  CHECK(contains(usage_error({"scaling", "a.toml", "--ranks=1,,2"}), "--ranks: a part"));
  // Words that look like options, or like commands, and are none; texts may be empty.
  CHECK(parse({"plan", "input", "--cluster", "--set"}).plan.cluster == "--set");
  CHECK(parse({"generate", "plan", "--prompt", ""}).generate.prompts == Arguments{""});
  CHECK(parse({"scaling", "a.toml", "--ranks", "1,2", "-o", "-x"}).scaling.output == "-x");
}

TEST_CASE("wrong usage") {
  CHECK(contains(usage_error({}), "the input file is missing"));
  CHECK(contains(usage_error({"tokenise", "x"}), "did you mean tokenize?"));
  CHECK(contains(usage_error({"genrate"}), "did you mean generate?"));
  CHECK_FALSE(usage_error({"in.toml", "--no-such"}).empty());
  CHECK_FALSE(usage_error({"in.toml", "other.toml"}).empty());
  CHECK_FALSE(usage_error({"in.toml", "--set"}).empty());
  // One value for each --set, as the help says.
  CHECK_FALSE(contains(parse({"--help"}).text, "--set table.key=value ..."));
  CHECK(contains(parse({"--help"}).text, "--set table.key=value "));
  const std::string alone = "'c.d=2' needs a --set of its own";
  CHECK(contains(usage_error({"in.toml", "--set", "a.b=1", "c.d=2"}), alone));
  CHECK(contains(usage_error({"--set", "a.b=1", "c.d=2", "in.toml"}), alone));
  CHECK_FALSE(usage_error({"in.toml", "eval", "a", "b"}).empty());
}

TEST_CASE("a budget has a number, with commas or without, and maybe a unit") {
  const auto plan_of = [](const std::string& budget) {
    return parse({"plan", "in.toml", "--cluster", "c.toml", "--budget", budget}).plan;
  };
  CHECK(plan_of("1,234,500.5 EUR").budget == 1234500.5);
  CHECK(plan_of("1,234,500.5 EUR").budget_unit == "EUR");
  CHECK(plan_of("200").budget == 200);
  CHECK(plan_of("200").budget_unit.empty());
}

}  // namespace t3d
