// How trainings end, as exit.json and the record of the life say it: who is to start them again,
// and in whose folder nothing is written.
#include "run/job_end.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include "io/lives/exit_record.hpp"
#include "io/lives/life_files.hpp"
#include "run/stopping.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"

namespace t3d {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<RunLock> lock_of(const std::string& dir) {
  return std::make_unique<RunLock>(std::vector<std::string>{dir}, "r", [](const std::string&) {});
}

/// A job in a folder of its own; nothing is put back into a queue.
struct Job {
  Job() {
    config.run.dir = dir;
    config.run.requeue = false;
    config.checkpoint.dir = dir + "/ckpt";
    life.begin(config, *lock, 4, 2);
  }
  void set_folder() { end.set_folder(lock.get(), epoch_of_lock(lock->lease().token)); }
  [[nodiscard]] std::optional<ExitRecord> exit() const { return read_exit_record(dir); }

  test::ScratchFolder folder{"job_end"};
  const std::string& dir = folder.path();
  Config config;
  std::vector<std::string> warnings;
  const Warn warn = [this](const std::string& text) { warnings.push_back(text); };
  std::unique_ptr<RunLock> lock = lock_of(dir);
  Life life{warn};
  JobEnd end{config, 0, life, warn};
};

constexpr JobEnd::Progress kAfterNine{5, 4, 9, 9};

/// exit.json of a job that was stopped by these flags.
ExitRecord stopped_by(unsigned flags) {
  Job job;
  job.set_folder();
  job.end.stopped(flags);
  job.end.record(ExitCode::retry, "stopped", kAfterNine);
  CHECK(job.warnings.empty());
  CHECK_FALSE(job.end.last_act());
  return job.exit().value();
}

}  // namespace

TEST_CASE("what the user asks for is the reason, whatever comes beside it") {
  CHECK(Stopping::reason(kStopFile | kTimeNear).find("stop_now") != std::string::npos);
  CHECK(Stopping::reason(kInterrupted | kTimeNear).find("signal") != std::string::npos);
  CHECK(Stopping::reason(kStopAsked | kTimeNear).find("limit") != std::string::npos);
  CHECK_FALSE(Stopping::goes_on(kStopFile | kTimeNear));
  CHECK_FALSE(Stopping::goes_on(kInterrupted | kTimeNear));
}

TEST_CASE("a read that may work later") {
  Job job;
  job.set_folder();
  job.end.fault_may_pass();
  job.end.record(ExitCode::io, "cannot read x", {-1, 0, 0, -1});
  CHECK(job.exit()->goes_on);
  CHECK(job.exit()->code == ExitCode::io);
}

TEST_CASE("a training that has come to its end") {
  Job job;
  job.set_folder();
  job.end.record(ExitCode::done, "all steps done", kAfterNine);
  const ExitRecord exit = job.exit().value();
  CHECK(exit.code == ExitCode::done);
  CHECK(exit.reason == "all steps done");
  CHECK(exit.step == 9);
  CHECK(exit.checkpoint == 9);
  CHECK_FALSE(exit.goes_on);
  CHECK_FALSE(exit.paused);
  CHECK(last_lives(job.dir, 1).at(0).reason == "all steps done");
}

TEST_CASE("who stops a training for good, and who does not") {
  CHECK(stopped_by(kStopAsked).goes_on);
  CHECK(stopped_by(kTimeNear).goes_on);
  CHECK_FALSE(stopped_by(kStopFile).goes_on);
  CHECK_FALSE(stopped_by(kStopAsked | kInterrupted).goes_on);
}

TEST_CASE("a training that pauses waits for a job of another size") {
  Job job;
  job.set_folder();
  job.end.paused();
  job.end.record(ExitCode::retry, "paused", kAfterNine);
  CHECK(job.exit()->goes_on);
  CHECK(job.exit()->paused);
  CHECK_FALSE(job.exit()->requeues);
}

TEST_CASE("an end before the trainer is there, and one for the loss of a rank") {
  Job job;
  job.set_folder();
  job.end.record(ExitCode::peer_lost, "rank 3 does not answer", {5, 0, 0, 5});
  CHECK(job.exit()->step == 5);  // of the checkpoint
  CHECK(job.exit()->goes_on);

  Job first;
  first.set_folder();
  first.end.record(ExitCode::config, "too small", {});
  CHECK(first.exit()->step == 0);
  CHECK_FALSE(first.exit()->checkpoint);
  CHECK_FALSE(first.exit()->goes_on);
}

TEST_CASE("a record that cannot be written is a warning") {
  Job job;
  job.set_folder();
  fs::create_directory(job.dir + "/exit.json.rank-0");
  job.end.record(ExitCode::done, "all steps done", kAfterNine);
  CHECK(job.warnings.size() == 1);
  CHECK(last_lives(job.dir, 1).at(0).reason == "all steps done");
}

TEST_CASE("nothing is written into a folder that is not the job's") {
  Job waiting;  // for the folder
  waiting.end.record(ExitCode::retry, "asked to stop", {});
  CHECK_FALSE(waiting.exit());

  Job robbed;
  robbed.set_folder();
  fs::remove(robbed.dir + "/run.lock");
  const std::unique_ptr<RunLock> other = lock_of(robbed.dir);
  for (int look = 0; look < 300 && !robbed.lock->lost(); ++look)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  REQUIRE(robbed.lock->lost());
  robbed.end.record(ExitCode::done, "all steps done", kAfterNine);
  CHECK_FALSE(robbed.exit());
  // Another rank than 0 has no lock to ask, but knows whose life it is of.
  JobEnd peer(robbed.config, 1, robbed.life, robbed.warn);
  peer.set_folder(nullptr, epoch_of_lock(robbed.lock->lease().token));
  peer.record(ExitCode::internal, "a left-over", kAfterNine);
  CHECK_FALSE(robbed.exit());
  CHECK(last_lives(robbed.dir, 1).empty());
}

}  // namespace t3d
