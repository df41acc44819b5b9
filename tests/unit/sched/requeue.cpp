// When a job puts itself back into Slurm's queue, and what it says where it cannot.
#include "sched/requeue.hpp"

#include <fmt/format.h>

#include "support/catch.hpp"

namespace t3d::test {
namespace {

std::string job(const char* state, int batch, int may) {
  return fmt::format("JobId=7 JobName=x JobState={} Requeue={} Restarts=0 BatchFlag={}", state, may,
                     batch);
}

Requeue answer(const std::optional<std::string>& text) {
  return can_requeue(
      [&](const std::vector<std::string>& words) {
        CHECK(words == std::vector<std::string>{"-o", "show", "job", "7"});
        return text;
      },
      "7");
}

}  // namespace

TEST_CASE("only a running batch job that may be requeued is") {
  CHECK(answer(job("RUNNING", 1, 1)).possible);
  CHECK(answer(job("RUNNING", 1, 1)).text.empty());
  CHECK_THAT(answer(job("RUNNING", 1, 0)).text, Catch::Contains("submit the same script again"));
  CHECK_THAT(answer(job("RUNNING", 0, 1)).text, Catch::Contains("no script"));
  for (const char* state : {"CANCELLED", "COMPLETING", "PREEMPTED", "TIMEOUT"}) {
    const Requeue refused = answer(job(state, 1, 1));
    CHECK_FALSE(refused.possible);  // scancel is meant to end a job
    CHECK(refused.over);
    CHECK_THAT(refused.text, Catch::Contains(state));
  }
  CHECK_FALSE(answer(job("PENDING", 1, 1)).possible);  // it is in the queue already
  CHECK(answer(job("PENDING", 1, 1)).text.empty());
  CHECK_FALSE(answer(std::nullopt).possible);
  CHECK_FALSE(answer("slurm_load_jobs error").possible);
  CHECK(can_requeue([](const auto&) { return std::optional<std::string>(); }, "").text.empty());
}

TEST_CASE("requeueing is Slurm's answer") {
  std::vector<std::string> asked;
  const auto yes = [&](const std::vector<std::string>& words) {
    asked = words;
    return std::optional<std::string>("");
  };
  CHECK(requeue(yes, "7"));
  CHECK(asked == std::vector<std::string>{"requeue", "Incomplete", "7"});
  CHECK_FALSE(requeue([](const auto&) { return std::optional<std::string>(); }, "7"));
}

}  // namespace t3d::test
