// What a training keeps of its life: which reasons it gives, and that whatever goes wrong with the
// record costs a warning.
#include "run/life.hpp"

#include <filesystem>
#include <fstream>
#include <memory>

#include "io/lock/lock_owner.hpp"
#include "io/posix_file.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"

namespace t3d {
namespace {

namespace fs = std::filesystem;

class Job {
 public:
  explicit Job(const std::string& dir, const std::string& restart = "auto") {
    config_.run.dir = dir;
    config_.checkpoint.dir = dir + "/ckpt";
    config_.checkpoint.restart = restart;
    lock_ =
        std::make_unique<RunLock>(std::vector<std::string>{dir}, "r", [](const std::string&) {});
    life.begin(config_, *lock_, 4, 2);
  }
  std::vector<std::string> warnings;
  /// As RunLog::later(), at once.
  auto later() {
    return [this](const std::string&, const std::function<void()>& work) {
      try {
        work();
      } catch (const std::exception& error) {
        warnings.emplace_back(error.what());
      }
    };
  }
  Life life{[this](const std::string& text) { warnings.push_back(text); }};

 private:
  Config config_;
  std::unique_ptr<RunLock> lock_;
};

LifeRecord last(const std::string& dir) { return last_lives(dir, 1).at(0); }

}  // namespace

TEST_CASE("the reasons of lives") {
  const test::ScratchFolder folder("life");
  const std::string& dir = folder.path();
  const CheckpointInfo from{dir + "/ckpt/step-00000005", {}};
  {
    Job job(dir);
    job.life.goes_on({}, 0, 0);
    job.life.step_done(job.later());
    job.life.end({ExitCode::retry, "asked to stop\nby two lines", 5, 5});
  }
  CHECK(last(dir).why == "new run");
  CHECK(last(dir).ranks == 4);
  CHECK(last(dir).nodes == 2);
  CHECK(last(dir).first_step_seconds.value_or(0) > 0);
  CHECK(last(dir).started < *last(dir).ended);
  {
    Job job(dir);
    job.life.goes_on(from, 5, 0);
    CHECK(last(dir).lost_steps == 0);
    job.life.end({ExitCode::done, "all steps done", 9, 9});
  }
  CHECK(last(dir).why == "continued after: asked to stop");
  CHECK(last(dir).checkpoint == from.path);
  CHECK_FALSE(last(dir).first_step_seconds);
  {
    Job job(dir, from.path);
    job.life.goes_on(from, 5, 1);
    CHECK(last(dir).lost_steps == 0);  // chosen: its checkpoint stays
    job.life.end({ExitCode::io, "no", 5, 5});
  }
  CHECK(last(dir).why == "-r " + from.path + " after: all steps done");
  CHECK(last(dir).life == 3);

  // A folder of an earlier version, and a new one with somebody else's checkpoint.
  fs::remove(dir + "/lives.jsonl");
  {
    Job job(dir);
    job.life.goes_on(from, 5, 0);
    job.life.end({ExitCode::done, "", 9, 9});
  }
  CHECK(last(dir).why == "continued after lives that are not known");
  fs::remove(dir + "/lives.jsonl");
  {
    Job job(dir, from.path);
    job.life.goes_on(from, 5, 0);
    job.life.end({ExitCode::done, "", 9, 9});
    CHECK(job.warnings.empty());
  }
  CHECK(last(dir).why == "new run, -r " + from.path);
}

TEST_CASE("a start takes the exit of the life before away, once that is in its record") {
  const test::ScratchFolder folder("life");
  const std::string& dir = folder.path();
  {
    Job job(dir);
    job.life.goes_on({}, 0, 0);
  }
  write_exit_record(dir, {ExitCode::peer_lost, "rank 3 does not answer", 7, 5}, 1);
  const Job job(dir);
  CHECK_FALSE(fs::exists(dir + "/exit.json"));
  CHECK(last(dir).code == 76);
  CHECK(last(dir).ended);
}

TEST_CASE("a job whose lock is another's writes no record") {
  const test::ScratchFolder folder("life");
  const std::string& dir = folder.path();
  Job job(dir);
  job.life.goes_on({}, 0, 0);
  const std::string before = read_text_file(dir + "/life.json");
  write_text_durably(dir + "/run.lock", format_owner(this_process("other")));
  job.life.step_done(job.later());
  job.life.end({ExitCode::done, "all steps done", 9, 9});
  CHECK(job.warnings.size() == 2);
  CHECK(read_text_file(dir + "/life.json") == before);
  CHECK_FALSE(fs::exists(dir + "/lives.jsonl"));
}

TEST_CASE("records that cannot be read or written cost warnings") {
  const test::ScratchFolder folder("life");
  const std::string& dir = folder.path();
  {
    Job job(dir);
    job.life.goes_on({}, 0, 0);
  }
  fs::create_directory(dir + "/lives.jsonl");
  {
    Job job(dir);
    job.life.goes_on({}, 0, 0);
    job.life.step_done(job.later());
    job.life.end({ExitCode::done, "all steps done", 9, 9});
    CHECK(job.warnings.size() == 1);  // nothing is tried again
  }
  CHECK_FALSE(fs::exists(dir + "/life.json"));  // the log is no longer that life's
  fs::remove(dir + "/lives.jsonl");
  fs::create_directories(dir + "/life.json.tmp");
  Job job(dir);
  job.life.goes_on({}, 0, 0);
  job.life.step_done(job.later());
  job.life.step_done(job.later());
  job.life.end({ExitCode::done, "all steps done", 9, 9});
  CHECK(job.warnings.size() == 3);
  CHECK(last(dir).step == 9);  // the end can be kept
}

}  // namespace t3d
