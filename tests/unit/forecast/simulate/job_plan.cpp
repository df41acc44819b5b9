// The job plan as a file: it comes back as it was, and every fault of a wrong one is told.
#include "forecast/simulate/job_plan.hpp"

#include "core/error.hpp"
#include "support/catch.hpp"
#include "unit/forecast/simulate/job_rig.hpp"

namespace t3d::test {
namespace {

std::string fault_of(const std::string& text) {
  try {
    (void)parse_job_plan(text, "p.json");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::config);
    return error.what();
  }
  return "none";
}

std::string plan(const std::string& classes, const std::string& sizes,
                 const std::string& more = "") {
  return R"({"format": "transformer3d job plan", "version": 1, "samples": 100, "classes": )" +
         classes + R"(, "sizes": )" + sizes + more + "}";
}

const std::string kClasses = R"([{"name": "a", "price_per_hour": 1}])";
const std::string kSizes = R"([{"nodes": {"a": 2}, "step_seconds": 1, "samples_per_step": 2}])";

TEST_CASE("a job plan comes back as it was written") {
  SimulatedJob job = small_job();
  job.name = "x \"y\"";
  job.classes[0].hazard = Hazard::weibull(0.32, 110, 1);
  job.classes.push_back({"b", 7, 0, Hazard::of_buckets({{0, 0.1}, {1, 0.2}}), 12, true});
  for (JobSize& size : job.sizes) size.nodes.push_back(1);
  job.sizes[0].name = "small";
  job.sizes[1].name = job.sizes[2].name = "larger";
  job.site = {1, 3600, 3, 4, true, 5, 6};
  job.policy = {"as planned", Recovery::in_place, 3, 99, 2, Sizing::wait};
  const std::string text = job_plan_text(job);
  const SimulatedJob again = parse_job_plan(text, "p.json");
  CHECK(job_plan_text(again) == text);
  CHECK(again.classes[1].hazard == job.classes[1].hazard);
  CHECK(again.classes[0].hazard == job.classes[0].hazard);
  CHECK(again.policy.sizing == Sizing::wait);
  CHECK(again.classes[1].warned);
  CHECK(again.sizes[0].name == "small");
  CHECK(parse_job_plan(plan(kClasses, kSizes), "p").site.walltime_seconds == kNoTime);
  CHECK(parse_job_plan(
            plan(R"([{"name": "a", "price_per_hour": 1, "hazard": {"like": "K80"}}])", kSizes), "p")
            .classes[0]
            .hazard == *published_hazard("K80"));
}

TEST_CASE("all faults of a job plan are told at once, with their fields") {
  const std::string text = plan(
      R"([{"name": "a", "price_per_hour": -1, "nodes": 4, "hazard": {"like": "Q1"}},
          {"name": "a", "price_per_hour": 0, "hazard": {"per_hour": [1, 2], "age_hours": [0, 0]}},
          {"price_per_hour": 1e99, "colour": 1, "hazard": {"weibull": {"shape": 0}}}])",
      R"([{"nodes": {"a": 5, "z": 1}, "step_seconds": 0, "samples_per_step": "x"}, 7])",
      R"(, "costs": {"restart_seconds": -3}, "policy": {"copies": 0, "sizing": "no"}, "oops": {})");
  CHECK(fault_of(text) ==
        "p.json: 17 faults\n"
        "  unknown field 'oops'\n"
        "  classes[0].price_per_hour: -1 is not from 0 to 1e+12\n"
        "  classes[0].hazard.like: 'Q1' has no published hazard; K80, P100 and V100 have\n"
        "  classes[1].hazard.age_hours: does not ascend from 0\n"
        "  classes[1]: a second class 'a'\n"
        "  classes[2]: unknown field 'colour'\n"
        "  classes[2]: 'name' is missing\n"
        "  classes[2].price_per_hour: 1e+99 is not from 0 to 1e+12\n"
        "  classes[2].hazard.weibull: 'scale_hours' is missing\n"
        "  sizes[0].nodes.a: 5 nodes, but the class has 4\n"
        "  sizes[0].nodes: there is no class 'z'\n"
        "  sizes[0].step_seconds: 0 is not from 1e-06 to 1e+09\n"
        "  sizes[0].samples_per_step: expected a number, got \"x\"\n"
        "  sizes[1]: expected an object {...}, got 7\n"
        "  costs.restart_seconds: -3 is not from 0 to 1e+09\n"
        "  policy.sizing: 'no' is none of rule, shrink, wait\n"
        "  policy.copies: 0 is not from 1 to 16");
}

TEST_CASE("what is no job plan at all") {
  CHECK(fault_of("").find("no job plan") != std::string::npos);
  CHECK(fault_of("{\"a\": ").find("not JSON") != std::string::npos);
  CHECK(fault_of(std::string(100000, '[')).find("nest deeper") != std::string::npos);
  CHECK(fault_of("[]").find("expected an object") != std::string::npos);
  CHECK(fault_of("{}").find("'format' is missing") != std::string::npos);
  CHECK(fault_of(plan("[]", "[]")).find("classes: the list is empty") != std::string::npos);
  CHECK(fault_of(plan(kClasses, "null")).find("expected a list") != std::string::npos);
  CHECK(fault_of(plan(kClasses, R"([{"nodes": {}, "step_seconds": 1, "samples_per_step": 2}])"))
            .find("a size without nodes") != std::string::npos);
  std::string old = plan(kClasses, kSizes);
  old.replace(old.find(": 1,"), 4, ": 2,");
  CHECK(fault_of(old).find("version: this program reads version 1") != std::string::npos);
  CHECK(fault_of(plan(kClasses, R"([{"nodes": {"a": 1e99}, "step_seconds": 1,
                                     "samples_per_step": 2}])"))
            .find("expected a whole number") != std::string::npos);
  CHECK(fault_of(plan(kClasses, R"([{"nodes": {"a": 18446744073709551615}, "step_seconds": 1,
                                     "samples_per_step": 2}])"))
            .find("is not from 0 to") != std::string::npos);
}

TEST_CASE("policies as words") {
  const SimulationPolicy policy =
      parse_policy("copies=2,interval=90,spares=1,sizing=wait,recovery=in_place", {});
  CHECK(policy.copies == 2);
  CHECK(policy.interval_seconds == 90);
  CHECK(policy.spares == 1);
  CHECK(policy.sizing == Sizing::wait);
  CHECK(policy.recovery == Recovery::in_place);
  CHECK(parse_policy("interval=auto", policy).interval_seconds == 0);
  for (const char* bad : {"", "copies", "copies=0", "copies=x", "interval=0.1", "interval=nan",
                          "sizing=big", "spares=-1", "copies=2,", "pi=3"})
    CHECK_THROWS_AS(parse_policy(bad, {}), Error);
}

}  // namespace
}  // namespace t3d::test
