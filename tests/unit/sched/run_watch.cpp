// What is looked for beside the steps: files that ask for something, and how much time is left.
#include "sched/run_watch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <ctime>
#include <fstream>
#include <mutex>
#include <utility>

#include "core/run_event.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"

namespace t3d::test {
namespace {

std::string job_text(const char* used, const char* limit) {
  return fmt::format("JobId=7 JobState=RUNNING Partition=low RunTime={} TimeLimit={}", used, limit);
}

unsigned wishes_within_seconds(RunWatch& watch, unsigned wanted) {
  unsigned seen = kNoFlag;
  for (int look = 0; look < 200 && (seen & wanted) != wanted; ++look) {
    seen |= watch.take_wishes({});
    usleep(25'000);
  }
  return seen;
}

}  // namespace

TEST_CASE("a file in the run folder asks once") {
  const ScratchFolder folder("watch");
  const auto touch = [&](const char* name) { std::ofstream(folder.path() + "/" + name) << ""; };
  const auto exists = [&](const char* name) {
    return access((folder.path() + "/" + name).c_str(), F_OK) == 0;
  };
  touch("stop_now");
  const timespec old[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
  CHECK(utimensat(AT_FDCWD, (folder.path() + "/stop_now").c_str(), old, 0) == 0);
  RunWatch watch({folder.path(), 0, "", {}});
  CHECK_FALSE(exists("stop_now"));  // of an earlier run
  CHECK(watch.take_wishes({}) == kNoFlag);
  CHECK_FALSE(watch.left_seconds());
  touch("checkpoint_now");
  touch("report_now");
  touch("other");
  CHECK(wishes_within_seconds(watch, kCheckpointDue | kReportDue) == (kCheckpointDue | kReportDue));
  CHECK(watch.take_wishes({}) == kNoFlag);
  CHECK_FALSE(exists("checkpoint_now"));
  CHECK(exists("other"));
  touch("stop_now");
  CHECK(wishes_within_seconds(watch, kStopFile) == kStopFile);
  // One that cannot be removed asks once.
  CHECK(mkdir((folder.path() + "/report_now").c_str(), 0700) == 0);
  CHECK(wishes_within_seconds(watch, kReportDue) == kReportDue);
  usleep(1'500'000);
  CHECK(watch.take_wishes({}) == kNoFlag);
  // Touched while the program starts: it counts.
  touch("stop_now");
  CHECK(RunWatch({folder.path(), 0, "", {}}).take_wishes({}, kStopFlags) == kStopFile);
}

TEST_CASE("the nearer of two time limits counts") {
  const ScratchFolder folder("watch");
  std::vector<std::string> asked;
  RunWatch::Options options{
      folder.path(), 0, "7", [&](const std::vector<std::string>& words) {
        asked.push_back(fmt::format("{}", fmt::join(words, " ")));
        return std::optional(words[2] == "partition" ? std::string("PartitionName=low GraceTime=15")
                                                     : job_text("00:10", "01:00:00"));
      }};
  {
    RunWatch watch(options);
    CHECK(asked == std::vector<std::string>{"-o show job 7", "-o show partition low"});
    CHECK(watch.grace_seconds() == 15);
    REQUIRE(watch.left_seconds());
    CHECK(*watch.left_seconds() == Approx(3590).margin(5));
    CHECK(watch.take_wishes({}) == kNoFlag);
    Pace slow;
    slow.add_step(1790);
    CHECK(watch.take_wishes(slow) == kTimeNear);
  }
  options.hours = 0.5;
  CHECK(*RunWatch(options).left_seconds() == Approx(1800).margin(5));
  options.hours = 2;
  CHECK(*RunWatch(options).left_seconds() == Approx(3590).margin(5));
  // Slurm does not answer, or knows no limit.
  options.scontrol = [](const auto&) { return std::optional<std::string>(); };
  CHECK(*RunWatch(options).left_seconds() == Approx(7200).margin(5));
  options.hours = 0;
  CHECK_FALSE(RunWatch(options).left_seconds());
  options.scontrol = [](const auto&) { return std::optional(job_text("00:10", "UNLIMITED")); };
  CHECK_FALSE(RunWatch(options).left_seconds());
  CHECK(RunWatch(options).job()->id == "7");
}

TEST_CASE("a limit is kept while Slurm does not answer") {
  const ScratchFolder folder("watch");
  RunWatch::Options options{folder.path(), 0, "7",
                            [](const auto&) { return std::optional<std::string>(); }};
  options.slurm_end = static_cast<double>(std::time(nullptr)) + 900;  // of the job's environment
  CHECK(*RunWatch(options).left_seconds() == Approx(900).margin(5));
  options.hours = 0.1;
  CHECK(*RunWatch(options).left_seconds() == Approx(360).margin(5));
  options.hours = 0;
  // Slurm's own word counts more: the limit was changed.
  options.scontrol = [](const auto&) { return std::optional(job_text("00:10", "01:00:00")); };
  CHECK(*RunWatch(options).left_seconds() == Approx(3590).margin(5));
  // An answer without a limit that can be read says nothing of it.
  options.scontrol = [](const auto&) {
    return std::optional(job_text("INVALID", "Partition_Limit"));
  };
  CHECK(*RunWatch(options).left_seconds() == Approx(900).margin(5));
  options.scontrol = [](const auto&) { return std::optional(job_text("00:10", "UNLIMITED")); };
  CHECK_FALSE(RunWatch(options).left_seconds());
}

TEST_CASE("the job's comment says how far the run is") {
  const ScratchFolder folder("watch");
  std::mutex mutex;
  std::vector<std::string> comments;
  std::string job = job_text("00:10", "01:00:00");
  bool allowed = true;
  const RunWatch::Options options{folder.path(), 0, "7",
                                  [&](const std::vector<std::string>& words) {
                                    const std::lock_guard lock(mutex);
                                    if (words.front() != "update") return std::optional(job);
                                    comments.push_back(fmt::format("{}", fmt::join(words, "|")));
                                    return allowed ? std::optional<std::string>("") : std::nullopt;
                                  }};
  const auto comments_of = [&](const RunWatch::Progress& progress) {
    RunWatch watch(options);
    watch.set_progress({1000, progress.steps, progress.loss});
    usleep(100'000);
    watch.set_progress(progress);
    usleep(2'500'000);
    const std::lock_guard lock(mutex);
    return std::exchange(comments, {});
  };
  const std::vector<std::string> told = comments_of({1200, 5000, 3.2149});
  REQUIRE(told.size() == 1);  // once a minute
  CHECK_THAT(told.front(),
             Catch::StartsWith("update|JobId=7|Comment=step 1200/5000, loss 3.21, ends in "));
  CHECK_THAT(comments_of({1000, 5000, NAN}).at(0), Catch::EndsWith("Comment=step 1000/5000"));
  job += " Comment=step 3/4, loss 1";  // of the life before
  CHECK(comments_of({1000, 5000, 1}).size() == 1);
  job = job_text("00:10", "01:00:00") + " AdminComment=x Comment=project 12";
  CHECK(comments_of({1000, 5000, 1}).empty());
  job = job_text("00:10", "01:00:00");
  allowed = false;  // silently
  CHECK(comments_of({1000, 5000, 1}).size() == 1);
}

}  // namespace t3d::test
