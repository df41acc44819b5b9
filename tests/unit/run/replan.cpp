// debug.replan: what another plan may change, and what is said of one that changes more or is none.
#include "run/replan.hpp"

#include "core/error.hpp"
#include "io/posix_file.hpp"
#include "support/catch.hpp"
#include "support/plan_rig.hpp"
#include "support/scratch_folder.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

Plan now() { return plan_of_cuboids(gpt_input(), {{2, 1, 1}, {1, 2, 1}}); }

/// The answer to a plan in a file: "" where it is taken.
std::string answer(const std::string& text) {
  const ScratchFolder scratch("replan");
  const std::string file = scratch.path() + "/other.toml";
  write_text_durably(file, text);
  try {
    const Replan replan = parse_replan("3:" + file, now());
    CHECK(replan.step == 3);
    return "";
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::config);
    CHECK_THAT(error.what(), contains("debug.replan: "));
    CHECK_THAT(error.what(), contains("other.toml"));
    return error.what();
  }
}

std::string with_line(const std::string& key, const std::string& value) {
  std::string text = now().text();
  const auto first = text.find("\n" + key + " = ") + 1;
  REQUIRE(first > 0);
  return text.replace(first, text.find('\n', first) - first, key + " = " + value);
}

}  // namespace

TEST_CASE("a change of plan may change shape, places, widths, shares and memory", "[replan]") {
  const Config config = gpt_input();
  CHECK(parse_replan("1:same", now()).plan == now());
  Plan plan = plan_of_cuboids(config, {{1, 1, 2}, {1, 1, 1}}, 4);
  plan.aggregate = now().aggregate;
  CHECK(answer(plan.text()) == "");
  plan = plan_of_cuboids(config, {{2, 2, 1}}, 4);
  plan.aggregate = now().aggregate;
  plan.place = {3, 1, 0, 2};
  plan.reduce_in_fp32 = true;
  CHECK(answer(plan.text()) == "");
  CHECK(answer(with_line("place", "[2, 0, 3, 1]")) == "");
  CHECK(answer(with_line("storage", "[[0, 1, 4], 1]")) == "");
  CHECK(answer(with_line("keep_weights", "false")) == "");
  CHECK(answer(with_line("recompute", "\"block\"")) == "");
  CHECK(answer(with_line("transport", "\"staged\"")) == "");  // the machine decides
}

TEST_CASE("a plan that computes something else is refused by the field", "[replan]") {
  const std::pair<const char*, const char*> cases[] = {{"aggregate.reference_batch", "77"},
                                                       {"aggregate.placement", "\"post\""},
                                                       {"aggregate.wire", "\"bf16\""},
                                                       {"aggregate.method", "\"sum\""},
                                                       {"aggregate.per", "\"model\""},
                                                       {"optimizer", "\"sgd\""},
                                                       {"compute", "\"bf16\""},
                                                       {"model.dropout", "0.5"},
                                                       {"model.hidden", "64"},
                                                       {"gemm_engine", "\"native\""}};
  for (const auto& [key, value] : cases) {
    INFO(key);
    const std::string text = answer(with_line(key, value));
    const bool fits = std::string(key) != "model.hidden";  // else its widths are wrong already
    CHECK_THAT(text, contains(fits ? fmt::format("other.toml changes {}: ", key) : "hidden"));
  }
  Config half = gpt_input();
  half.batch.sequences = 2;
  Plan plan = plan_of_cuboids(half, {{2, 1, 1}, {1, 2, 1}});
  plan.aggregate = now().aggregate;
  CHECK_THAT(answer(plan.text()), contains("changes the sequences of a step: 5 -> 2"));
  Config other = gpt_input();
  CHECK_THAT(answer(plan_of_cuboids(other, {{2, 1, 1}}).text()),
             contains("2 ranks, the job has 4"));
}

TEST_CASE("a file that is no plan is bad input, with its line", "[replan]") {
  CHECK_THAT(answer("nonsense\n"), contains("line 1: \"nonsense\" is not key = value"));
  CHECK_THAT(answer(""), contains("version is missing"));
  const std::string bad = with_line("place", "[0, x]");
  const auto line =
      std::count(bad.begin(), bad.begin() + static_cast<std::ptrdiff_t>(bad.find("\nplace")) + 1,
                 '\n') +
      1;
  CHECK_THAT(answer(bad), contains(fmt::format("line {}: ", line)));
  CHECK_THAT(answer(with_line("keep_inputs", "true\nspeed = 3")), contains("speed is not known"));
  try {
    (void)parse_replan("3:/absent/plan.toml", now());
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::no_input);
    CHECK_THAT(error.what(), contains("debug.replan: /absent/plan.toml"));
  }
  for (const char* wish : {"3:", "x:same", "0:same", "same"})
    CHECK_THROWS_WITH(parse_replan(wish, now()), contains("is not STEP:FILE or STEP:same"));
}
