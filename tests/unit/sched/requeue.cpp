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

Requeue answer(const std::optional<std::string>& text, int restarts = 0) {
  return can_requeue(
      [&](const std::vector<std::string>& words) {
        CHECK(words == std::vector<std::string>{"-o", "show", "job", "7"});
        return text;
      },
      "7", restarts);
}

}  // namespace

TEST_CASE("only a running batch job that may be requeued is") {
  CHECK(answer(job("RUNNING", 1, 1)).possible);
  CHECK(answer(job("RUNNING", 1, 1)).text.empty());
  CHECK_THAT(answer(job("RUNNING", 1, 0)).text, Catch::Contains("submit it again"));
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
  CHECK(can_requeue([](const auto&) { return std::optional<std::string>(); }, "", 0).text.empty());
}

TEST_CASE("a left-over of an earlier life does not put the healthy one back") {
  const auto started = [](const char* state, int restarts) {
    return fmt::format("JobId=7 JobState={} Requeue=1 Restarts={} BatchFlag=1", state, restarts);
  };
  CHECK_FALSE(answer(started("RUNNING", 2), 1).possible);
  CHECK_FALSE(answer(started("RUNNING", 2), 1).over);
  CHECK(answer(started("RUNNING", 2), 2).possible);
  CHECK(answer(started("RUNNING", 0), 2).possible);  // submitted by a restarted job
  std::vector<std::string> asked;
  const auto slurm = [&](const std::vector<std::string>& words) {
    if (words.front() == "requeue") asked = words;
    return std::optional<std::string>(started("RUNNING", 2));
  };
  CHECK(requeue(slurm, "7", 1, {0.5, 0.001}).empty());
  CHECK(asked.empty());
}

TEST_CASE("of a job that Slurm itself has put back nothing is said") {
  for (const char* state : {"COMPLETING", "REQUEUED", "REQUEUE_HOLD", "PENDING", "PREEMPTED"}) {
    const Requeue done =
        answer(fmt::format("JobId=7 JobState={} Requeue=1 Restarts=1 BatchFlag=1", state));
    CHECK_FALSE(done.possible);
    CHECK_FALSE(done.over);
    CHECK(done.text.empty());
  }
  CHECK_FALSE(answer(job("REQUEUED", 1, 1)).over);
}

TEST_CASE("a job whose script was killed is put back, though Slurm takes it for failed") {
  const auto ended = [](const char* state, const char* reason, const char* code) {
    return fmt::format("JobId=7 JobState={} Reason={} Requeue=1 BatchFlag=1 ExitCode={}", state,
                       reason, code);
  };
  CHECK(answer(ended("COMPLETING", "JobLaunchFailure", "0:9")).ended);
  CHECK(answer(ended("FAILED", "JobLaunchFailure", "0:9")).possible);
  for (const std::string& text :
       {ended("COMPLETING", "None", "0:9"), ended("CANCELLED", "JobLaunchFailure", "0:9"),
        ended("FAILED", "NonZeroExitCode", "75:0"), ended("COMPLETING", "None", "0:0")})
    CHECK(answer(text).over);
  CHECK_FALSE(answer(job("RUNNING", 1, 1)).ended);
}

TEST_CASE(
    "a job that was preempted without a grace is put back, one that was cancelled later is not") {
  const auto preempted = [](const char* state, const char* when) {
    return fmt::format(
        "JobId=7 JobState={} Reason=None Requeue=1 BatchFlag=1 ExitCode=0:0 "
        "StartTime=2026-11-22T15:07:19 PreemptEligibleTime=2026-11-22T15:07:19 PreemptTime={}",
        state, when);
  };
  CHECK(answer(preempted("COMPLETING", "2026-11-22T15:07:23")).ended);
  CHECK(answer(preempted("PREEMPTED", "2026-11-22T15:07:23")).ended);
  CHECK(answer(preempted("COMPLETING", "2026-11-22T14:59:59")).over);  // of an earlier life
  CHECK(answer(preempted("COMPLETING", "None")).over);
  CHECK(answer(preempted("CANCELLED", "2026-11-22T15:07:23")).over);
}

TEST_CASE("Slurm that does not answer is asked again, Slurm that refuses is not for long") {
  const Patience quick{0.5, 0.001};
  std::vector<std::string> asked;
  int silent = 3;
  const auto away = [&](const std::vector<std::string>& words) -> std::optional<std::string> {
    if (silent-- > 0) return std::nullopt;
    asked = words;
    return job("RUNNING", 1, 1);
  };
  CHECK(can_requeue(away, "7", 0).silent);
  CHECK(requeue(away, "7", 0, quick).empty());
  CHECK(asked == std::vector<std::string>{"requeue", "Incomplete", "7"});
  // Away for good; the job of a killed script; cancelled while Slurm was away; refused.
  CHECK_THAT(requeue([](const auto&) { return std::nullopt; }, "7", 0, quick),
             Catch::Contains("does not confirm"));
  const auto killed = [&](const std::vector<std::string>& words) {
    asked = words;
    return std::optional<std::string>(
        "JobId=7 JobState=FAILED Reason=JobLaunchFailure Requeue=1 BatchFlag=1 ExitCode=0:9");
  };
  CHECK(requeue(killed, "7", 0, quick).empty());
  CHECK(asked == std::vector<std::string>{"requeue", "7"});
  CHECK_THAT(
      requeue([](const auto&) { return std::optional(job("CANCELLED", 1, 1)); }, "7", 0, quick),
      Catch::Contains("CANCELLED"));
  int refused = 0;
  const auto refuses = [&](const std::vector<std::string>& words) -> std::optional<std::string> {
    if (words.front() != "requeue") return job("RUNNING", 1, 1);
    ++refused;
    return std::nullopt;
  };
  CHECK_THAT(requeue(refuses, "7", 0, {60, 0.001}), Catch::Contains("does not confirm"));
  CHECK(refused == 3);
}

}  // namespace t3d::test
