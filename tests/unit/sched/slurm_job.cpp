// What Slurm's commands print, and what is asked for from outside a run.
#include "sched/slurm_job.hpp"

#include <cstdlib>

#include "sched/ask.hpp"
#include "sched/time_limit.hpp"
#include "support/catch.hpp"

namespace t3d::test {

TEST_CASE("Slurm's times") {
  CHECK(seconds_of_slurm_time("02:03") == 123);
  CHECK(seconds_of_slurm_time("01:02:03") == 3723);
  CHECK(seconds_of_slurm_time("1-00:00:01") == 86401);
  CHECK(seconds_of_slurm_time("365-00:00:00") == 365.0 * 86400);
  for (const char* text :
       {"UNLIMITED", "Partition_Limit", "", "5", "INVALID", "1-", "-1:00", "1:2:3:4", "a:b"})
    CHECK_FALSE(seconds_of_slurm_time(text));
}

TEST_CASE("a job as scontrol shows it") {
  const char* text =
      "JobId=12 JobName=a b UserId=u(1000) GroupId=u(1000) MCS_label=N/A Priority=1 "
      "JobState=RUNNING "
      "Reason=None Dependency=(null) Requeue=1 Restarts=2 BatchFlag=1 Reboot=0 ExitCode=0:0 "
      "RunTime=00:01:30 TimeLimit=01:00:00 TimeMin=N/A Partition=low AllocNode:Sid=h:1 "
      "Command=/x/y\n"
      "JobId=13 JobState=PENDING";
  const auto job = slurm_job_of(text);
  REQUIRE(job);
  CHECK(job->id == "12");
  CHECK(job->state == "RUNNING");
  CHECK(job->partition == "low");
  CHECK(job->batch);
  CHECK(job->requeue);
  CHECK(job->restarts == 2);
  CHECK(job->left_seconds == 3510);

  const auto endless =
      slurm_job_of("JobId=1 JobState=RUNNING BatchFlag=0 RunTime=1:00 TimeLimit=UNLIMITED");
  REQUIRE(endless);
  CHECK_FALSE(endless->left_seconds);
  CHECK_FALSE(endless->batch);
  CHECK_FALSE(endless->requeue);
  CHECK_FALSE(slurm_job_of(""));
  CHECK_FALSE(slurm_job_of("slurm_load_jobs error: Invalid job id specified\n"));
  CHECK_FALSE(slurm_job_of("JobId=1"));
}

TEST_CASE("what a user writes is no word of Slurm's") {
  const std::string text =
      "JobId=12 ArrayJobId=11 ArrayTaskId=1 JobName=a JobState=FAILED Requeue=0 UserId=me "
      "Comment=x "
      "UserId=u(1000) GroupId=u(1000) MCS_label=N/A Priority=42 Nice=0 Account=(null) QOS=normal "
      "WCKey=* JobState=RUNNING Reason=None Dependency=(null) Requeue=1 Restarts=2 BatchFlag=1 "
      "Reboot=0 ExitCode=0:0 RunTime=00:01:30 TimeLimit=01:00:00 TimeMin=N/A "
      "StartTime=2026-11-22T15:07:23 Partition=low AllocNode:Sid=h:1 NodeList=n[1-2] "
      "Command=/x/my JobState=FAILED.sh Partition=z WorkDir=/x y/RunTime=3 "
      "AdminComment=z Comment=step 1/2, JobState=CANCELLED StdErr=/x/ Power=";
  const auto job = slurm_job_of(text);
  REQUIRE(job);
  CHECK(job->id == "12");
  CHECK(job->state == "RUNNING");
  CHECK(job->requeue);
  CHECK(job->restarts == 2);
  CHECK(job->partition == "low");
  CHECK(job->left_seconds == 3510);
  CHECK(job->comment == "step");
}

TEST_CASE("a question to Slurm is asked without the user's formats") {
  setenv("SLURM_TIME_FORMAT", "relative", 1);
  setenv("SINFO_FORMAT", "%P", 1);
  setenv("SLURM_JOB_ID", "7", 1);
  CHECK(output_of({"sh", "-c", "echo $SLURM_TIME_FORMAT$SINFO_FORMAT$SLURM_JOB_ID"}, 10) == "7\n");
  for (const char* name : {"SLURM_TIME_FORMAT", "SINFO_FORMAT", "SLURM_JOB_ID"}) unsetenv(name);
}

TEST_CASE("a partition's grace") {
  CHECK(grace_seconds_of("PartitionName=low AllowGroups=ALL GraceTime=15 Hidden=NO") == 15);
  CHECK(grace_seconds_of("PartitionName=low GraceTime=0") == 0);
  CHECK_FALSE(grace_seconds_of("PartitionName=low GraceTime=0 PreemptMode=OFF"));
  CHECK_FALSE(grace_seconds_of("PartitionName=low NotGraceTime=3"));
}

TEST_CASE("programs are asked, and not waited for") {
  CHECK(output_of({"echo", "a b"}, 10) == "a b\n");
  CHECK(output_of({"true"}, 10) == "");
  CHECK_FALSE(output_of({"false"}, 10));
  CHECK_FALSE(output_of({"no-such-program-anywhere"}, 10));
  CHECK_FALSE(output_of({}, 10));
  CHECK_FALSE(output_of({"sleep", "60"}, 0.05));
  CHECK_FALSE(output_of({"sh", "-c", "exec >&-; sleep 60"}, 0.05));
  CHECK_FALSE(output_of({"sh", "-c", "yes"}, 10));  // more than anybody asked for
}

TEST_CASE("a run stops early enough for a step, another one and a checkpoint") {
  Pace pace;
  CHECK(pace.long_step_seconds() == 0);
  CHECK(pace.stop_seconds() == 0);
  const double unknown = pace.reserve_seconds(1e5);
  CHECK(unknown > 10);
  CHECK(pace.reserve_seconds(100) == Approx(10));  // a short life is not all reserve
  for (int n = 0; n < 1000; ++n) pace.add_step(n % 200 == 7 ? 100 : 1 + n % 2);
  CHECK(pace.long_step_seconds() == 2);  // 1 or 2 of 256 steps last longer
  for (const double seconds : {50, 1, 2, 3, 4}) pace.add_save(seconds);
  CHECK(pace.save_seconds() == 4);
  CHECK(pace.stop_seconds() == 8);
  CHECK(pace.reserve_seconds(1e5) > 8);
  CHECK(pace.reserve_seconds(1e5) < unknown);
  pace.add_deaf(3);  // an evaluation hears of the wish later than a step would
  CHECK(pace.stop_seconds() == 9);
  pace.add_deaf(1);
  CHECK(pace.stop_seconds() == 9);
}

}  // namespace t3d::test
