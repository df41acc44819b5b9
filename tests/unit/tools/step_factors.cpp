// step_factors.json, as a run writes it and calibrate --from-run reads it.
#include "tools/step_factors.hpp"

#include "core/error.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"
#include "tools/calibrate/cluster_update.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

StepFactors example() {
  StepFactors factors{"c", "2026-03-01T12:00:00Z", {}};
  factors.factors.compute = {1.0 / 3, 1e-3 / 7};
  factors.factors.steps = 12;
  factors.factors.time = "2026-03-02T12:00:00Z";
  factors.factors.runs = {"gpt-1"};
  return factors;
}

}  // namespace

TEST_CASE("step factors are read back bit for bit, broken ones are refused") {
  const std::string text = step_factors_text(example());
  const StepFactors again = parse_step_factors(text, "f");
  CHECK(again.factors == example().factors);
  CHECK(again.node_class == "c");
  CHECK(again.calibrated_time == example().calibrated_time);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    const std::size_t at = changed.find(from);
    REQUIRE(at != std::string::npos);
    return changed.replace(at, from.size(), to);
  };
  CHECK_THROWS_WITH(parse_step_factors("{", "f"), contains("f: not JSON"));
  // As many as a file may have: what names the wrong value writes it.
  const std::string deep = std::string(500'000, '[') + std::string(500'000, ']');
  CHECK_THROWS_WITH(parse_step_factors(with("\"c\"", deep), "f"), contains("nest deeper"));
  CHECK_THROWS_WITH(parse_step_factors(with("\"steps\": 12", "\"steps\": 0"), "f"),
                    contains("steps: 0 is not from 1"));
  CHECK_THROWS_WITH(parse_step_factors(with("\"host\"", "\"hast\""), "f"),
                    contains("unknown field 'hast'"));
  CHECK_THROWS_WITH(parse_step_factors(with("0.333", "1e9, 0.333"), "f"), contains("at most 2"));
}
