#include "tools/step_factors.hpp"

#include <fmt/ranges.h>

#include "core/error.hpp"
#include "core/parse_json.hpp"
#include "forecast/simulate/json_faults.hpp"

namespace t3d {
namespace {

constexpr const char* kFormat = "transformer3d step factors";
constexpr double kLeastFactor = 0.01, kMostFactor = 100;
constexpr index_t kMostSteps = 1'000'000'000;
constexpr std::size_t kMostRuns = 1000;

RunFactor factor_of(const JsonValue& field) {
  if (!field.expect_list(2)) return {};
  if (field.json().size() != 2) {
    field.fault("expected [factor, standard error]");
    return {};
  }
  return {field.element(0).number(kLeastFactor, kMostFactor, 1),
          field.element(1).number(0, kMostFactor)};
}

}  // namespace

std::string step_factors_text(const StepFactors& factors) {
  JsonValue::Json json{{"format", kFormat},
                       {"version", 1},
                       {"class", factors.node_class},
                       {"calibrated_time", factors.calibrated_time},
                       {"steps", factors.factors.steps},
                       {"time", factors.factors.time},
                       {"runs", factors.factors.runs}};
  for (const auto& [name, factor] : kRunFactors) {
    const RunFactor& one = factors.factors.*factor;
    json[name] = {one.value, one.error};
  }
  return json.dump(1) + "\n";
}

StepFactors parse_step_factors(const std::string& text, const std::string& source) {
  JsonValue::Json json;
  try {
    json = parse_json<JsonValue::Json>(text, source);
  } catch (const nlohmann::json::exception& error) {
    throw_error(ExitCode::config, "{}: not JSON: {}", source, printable(error.what(), 200));
  }
  std::vector<std::string> faults;
  const JsonValue root(json, "", faults);
  StepFactors factors;
  RunFactors& own = factors.factors;
  constexpr std::size_t kFields = 11;
  if (root.expect_object({"format", "version", "class", "calibrated_time", "steps", "time", "runs",
                          "compute", "inside", "between", "host"},
                         kFields) &&
      faults.empty()) {
    if (root.member("format").json() != kFormat)
      root.member("format").fault(fmt::format("expected \"{}\"", kFormat));
    if (root.member("version").json() != 1)
      root.member("version").fault("this program reads version 1");
    factors.node_class = root.member("class").text();
    factors.calibrated_time = root.member("calibrated_time").text();
    own.steps = root.member("steps").count(1, kMostSteps);
    own.time = root.member("time").text();
    const JsonValue runs = root.member("runs");
    if (runs.expect_list(kMostRuns))
      for (std::size_t at = 0; at < runs.json().size(); ++at)
        own.runs.push_back(runs.element(at).text());
    for (const auto& [name, factor] : kRunFactors) own.*factor = factor_of(root.member(name));
  }
  if (!faults.empty()) throw_error(ExitCode::config, "{}: {}", source, fmt::join(faults, "; "));
  return factors;
}

}  // namespace t3d
