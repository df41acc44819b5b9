// The status of a run folder in every state that it can be in, and with files that are no files.
#include "run/run_status.hpp"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.hpp"
#include "io/lives/life_files.hpp"
#include "io/lock/lock_owner.hpp"
#include "io/lock/run_lock.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"

namespace t3d {
namespace {

namespace fs = std::filesystem;

class Run {
 public:
  Run() : folder_("run_status") {}
  [[nodiscard]] const std::string& dir() const { return folder_.path(); }
  [[nodiscard]] std::string path(const std::string& name) const { return dir() + "/" + name; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }
  void log(int last, int steps) const {
    std::string text;
    for (int step = 1; step <= last; ++step)
      text += fmt::format(
          "{{\"step\":{},\"steps\":{},\"loss\":{},\"seconds\":{},\"tokens_per_second\":1270}}\n",
          step, steps, 5.0 - 0.01 * step, step % 2 == 0 ? 2.0 : 2.5);
    write("log.jsonl", text);
  }
  void publish(const std::string& name) const {
    fs::create_directories(path("ckpt/" + name));
    std::ofstream(path("ckpt/" + name + "/MANIFEST.json")) << "{}";
  }
  [[nodiscard]] RunStatus look() const { return look_at_run(dir()); }
  [[nodiscard]] std::string text() const { return status_text(look()); }

 private:
  test::ScratchFolder folder_;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::size_t longest_line(const std::string& text) {
  std::size_t longest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
  return longest;
}

LifeRecord life(index_t number) {
  LifeRecord life;
  life.life = number;
  life.why = number == 1 ? "new run" : "continued after: asked to stop by a signal";
  life.from_step = 20 * (number - 1);
  life.lineage = 0;
  life.first_step_seconds = 0.75;
  return life;
}

}  // namespace

TEST_CASE("what is no run folder") {
  const Run run;
  for (const std::string& dir : {run.dir(), run.path("absent"), std::string("/dev/null")}) {
    ExitCode code = ExitCode::done;
    try {
      static_cast<void>(look_at_run(dir));
    } catch (const Error& error) {
      code = error.code();
    }
    CHECK(code == ExitCode::no_input);
  }
}

TEST_CASE("a run folder in which nothing was trained") {
  const Run run;
  fs::create_directory(run.path("ckpt"));
  CHECK(run.look().state == RunState::not_begun);
  CHECK(contains(run.text(), "not begun"));
  CHECK(nlohmann::json::parse(status_json(run.look()))["step"].is_null());
}

TEST_CASE("a run that is alive") {
  const Run run;
  run.log(100, 200);
  run.publish("step-00000080");
  run.publish("step-00000090.partial-abc");
  run.write(
      "run.log",
      "---- start\nplan 9c1f: mesh 2x1x1 -> 1x2x1\nplan: nothing\nstep 1/200 loss\nplan of mine\n"
      "warning: emulated\n");
  const RunLock lock({run.dir()}, "gpt", [](const std::string&) {});
  for (index_t number = 1; number <= 2; ++number)
    add_ended_life(run.dir(), closed_life(life(number),
                                          {ExitRecord{ExitCode::retry, "asked to stop by a signal",
                                                      20 * number, 20 * number},
                                           9,
                                           {},
                                           {}}));
  add_lost_steps(run.dir(), 40, false);
  LifeRecord now = life(3);
  now.first_step_seconds.reset();
  write_open_life(run.dir(), now);
  CHECK(run.look().state == RunState::starting);
  write_open_life(run.dir(), life(3));
  const RunStatus status = run.look();
  CHECK(status.state == RunState::running);
  CHECK(status.faults.empty());
  CHECK(status.life_count() == 3);
  CHECK(status.median_of == 50);
  CHECK(status.median_seconds == 2.25);
  CHECK(status.seconds_left() == 225.0);
  REQUIRE(status.newest);
  CHECK(status.newest->step == 80);
  CHECK(status.events == std::vector<std::string>{"plan 9c1f: mesh 2x1x1 -> 1x2x1", "plan: nothing",
                                                  "warning: emulated"});
  const std::string text = status_text(status);
  for (const char* part :
       {"running: process ", "100 of 200 (50.0 %)", "4.0000",
        "2250 ms a step, 1.27k tok/s (medians of 50)", "03:45 of steps, until ", "step 80, ",
        "lives       3", "ended with 75: asked to stop by a", "0 steps lost", "plan 9c1f"})
    CHECK(contains(text, part));
  CHECK(longest_line(text) <= std::max<std::size_t>(80, 14 + status.newest->path.size()));
  const auto json = nlohmann::json::parse(status_json(status));
  CHECK(json["state"] == "running");
  CHECK(json["alive"] == true);
  CHECK(json["left_seconds"] == 225.0);
  CHECK(json["predicted_end"].get<double>() == status.now + 225.0);
  CHECK(json["lives"] == 3);
  CHECK(json["life"]["life"] == 3);
  CHECK(json["last_lives"].size() == 2);
  CHECK(json["last_lives"][0]["lost_steps"].is_null());  // only the last is asked
  CHECK(json["last_lives"][1]["lost_steps"] == 0);
  CHECK(json["checkpoint"]["step"] == 80);
}

TEST_CASE("validations of first batches and of the whole set are two figures") {
  const Run run;
  const auto look = [&](const std::string& more) {
    run.write("log.jsonl", R"({"step":1,"loss":3,"valid_loss":2.75})"
                           "\n"
                           R"({"step":2,"loss":3})"
                           "\n" +
                               more);
    return run.look();
  };
  const RunStatus during = look("");
  CHECK(contains(status_text(during), "validation  2.7500 at step 1\n"));
  CHECK(nlohmann::json::parse(status_json(during))["valid_loss_whole"].is_null());
  const RunStatus end = look(R"({"step":3,"loss":3,"valid_loss_whole":2.5})"
                             "\n");
  CHECK(contains(status_text(end), "2.5000 at step 3, of the whole set"));
  const auto json = nlohmann::json::parse(status_json(end));
  CHECK(json["valid_loss"] == 2.75);
  CHECK(json["valid_loss_whole"] == 2.5);
  REQUIRE(end.newest_validation());
  CHECK(end.newest_validation()->step == 3);
}

TEST_CASE("a run that has ended says how") {
  const Run run;
  run.log(20, 20);
  write_exit_record(run.dir(), {ExitCode::done, "all steps done", 20, 20}, 0);
  CHECK(run.look().state == RunState::done);
  CHECK(contains(run.text(), "done (0) 00:0"));
  CHECK_FALSE(contains(run.text(), "left"));
  write_exit_record(run.dir(), {ExitCode::retry, "asked to stop", 20, 20}, 0);
  CHECK(run.look().state == RunState::stopped);
  write_exit_record(run.dir(), {ExitCode::diverged, "the loss is nan", 20, 20}, 0);
  CHECK(run.look().state == RunState::failed);
  CHECK(contains(run.text(), "failed (65)"));
  CHECK(contains(run.text(), "the loss is nan"));
}

TEST_CASE("a run that was killed, with its lock and without") {
  const Run run;
  run.log(20, 40);
  write_open_life(run.dir(), life(1));
  // Longer than any record, and mostly a hole: not read.
  run.write("exit.json", "{");
  fs::resize_file(run.path("exit.json"), std::uintmax_t{1} << 40);
  CHECK(contains(run.text(), "is too long: 1.00 TiB"));
  fs::remove(run.path("exit.json"));
  CHECK(run.look().state == RunState::killed);
  CHECK(run.look().life->step == 20);
  CHECK(run.look().life->reason == "ended without a word");
  CHECK(contains(run.text(), "ended without a word"));
  LockOwner owner = this_process("gpt");
  owner.pid = 999999999;  // there is none
  run.write("run.lock", format_owner(owner));
  const RunStatus status = run.look();
  CHECK(status.state == RunState::killed);
  CHECK(contains(status_text(status), "process 999999999"));
  CHECK(contains(status_text(status), "of steps"));
  CHECK(nlohmann::json::parse(status_json(status))["predicted_end"].is_null());
}

TEST_CASE("a lock of another host: no clock says that it has ended") {
  const Run run;
  run.log(20, 40);
  LockOwner owner = this_process("gpt");
  owner.host = "elsewhere";
  owner.boot = "another boot";
  owner.job = "";
  const auto aged = [&](int seconds) {
    run.write("run.lock", format_owner(owner));
    fs::last_write_time(run.path("run.lock"),
                        fs::file_time_type::clock::now() - std::chrono::seconds(seconds));
    return look_at_lock(run.dir(), 0.4).state;
  };
  CHECK(aged(1) == LockLook::State::alive);
  CHECK(aged(30) == LockLook::State::silent);
  CHECK(aged(-30) == LockLook::State::silent);  // a clock that is ahead says nothing
  CHECK(aged(90) == LockLook::State::silent);   // one that is behind neither
  run.write("run.lock", "not a record");
  CHECK(look_at_lock(run.dir(), 0.4).owner == "an owner that cannot be read");
}

TEST_CASE("steps that the log lacks, also up to the checkpoint of its lineage, are named") {
  const Run run;
  run.log(20, 40);
  LifeRecord ended = life(1);
  write_open_life(run.dir(), ended);
  run.publish("step-00000030");
  RunStatus status = run.look();
  add_missing(status, missing_steps(run.path("log.jsonl")));
  CHECK(contains(status_text(status), "log.jsonl lacks steps 21 to 30"));
  CHECK(nlohmann::json::parse(status_json(status))["missing_steps"] ==
        nlohmann::json::parse("[[21, 30]]"));
  ended.lineage = 3;  // it has brought no checkpoint yet: those are of another lineage
  write_open_life(run.dir(), ended);
  status = run.look();
  add_missing(status, missing_steps(run.path("log.jsonl")));
  CHECK_FALSE(contains(status_text(status), "lacks"));
}

TEST_CASE("a run.json that is no record is told") {
  const Run run;
  run.log(20, 40);
  for (const char* text : {"[1]", R"({"format": 99})", R"({"format": 1, "lives": [1, 2]})", ""}) {
    run.write("run.json", text);
    CHECK(contains(run.text(), "run.json is no record of a run:"));
  }
}

TEST_CASE("files that are none, or hold anything, are told and cost nothing else") {
  const Run run;
  run.write("log.jsonl",
            std::string(200000, '[') +
                "\n{\"step\":5,\"steps\":9223372036854775807,"
                "\"loss\":1.5,\"seconds\":1e300,\"tokens_per_second\":-1}\n{\"step\":6");
  run.write("exit.json", std::string(1000, '\0'));
  run.write("life.json", "\xff\xfe");
  run.write("lives.jsonl",
            "{}\n{\"life\":2,\"why\":\"\\u001b[31mred\",\"step\":9223372036854775807}\n");
  fs::create_directory(run.path("run.log"));
  run.write("ckpt", "a file");
  const RunStatus status = run.look();
  CHECK(status.last->step == 5);
  CHECK(status.faults.size() == 3);  // exit.json, run.log, ckpt
  const std::string text = status_text(status);
  CHECK(contains(text, "not read"));
  CHECK_FALSE(contains(text, "\x1b"));
  CHECK(contains(text, "\\x1B[31mred"));
  CHECK(nlohmann::json::parse(status_json(status))["not_read"].size() == 3);
}

}  // namespace t3d
