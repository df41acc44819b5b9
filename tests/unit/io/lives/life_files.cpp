// lives.jsonl and life.json: over kills at every point, beside torn lines, on a folder that fails.
#include "io/lives/life_files.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "io/posix_file.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"

namespace t3d {
namespace {

namespace fs = std::filesystem;

class Run {
 public:
  Run() : folder_("life_files") {}
  [[nodiscard]] const std::string& dir() const { return folder_.path(); }
  [[nodiscard]] std::string path(const std::string& name) const { return dir() + "/" + name; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
  }
  /// Steps `first` to `last` of log.jsonl.
  void log(int first, int last) const {
    std::string text;
    for (int step = first; step <= last; ++step)
      text += fmt::format("{{\"step\":{},\"steps\":100,\"loss\":1.5}}\n", step);
    write("log.jsonl", text);
  }
  void publish(int step) const {
    const std::string folder = path(fmt::format("ckpt/step-{:08}", step));
    fs::create_directories(folder);
    std::ofstream(folder + "/MANIFEST.json") << "{}";
  }
  std::optional<LifeRecord> close() const { return close_open_life(dir(), path("ckpt")); }
  [[nodiscard]] LifeRecord open(index_t number, index_t from) const {
    LifeRecord life;
    life.life = number;
    life.from_step = from;
    life.lineage = 0;
    life.first_step_seconds = 1;
    if (from > 0) life.checkpoint = path(fmt::format("ckpt/step-{:08}", from));
    write_open_life(dir(), life);
    return life;
  }

 private:
  test::ScratchFolder folder_;
};

}  // namespace

TEST_CASE("a life that ends in order, and one that is killed") {
  const Run run;
  CHECK_FALSE(run.close());
  CHECK_FALSE(fs::exists(run.path("lives.jsonl")));  // nothing to write

  const LifeRecord first = closed_life(
      run.open(1, 0), {ExitRecord{ExitCode::retry, "asked to stop", 20, 20}, 5, {}, {}});
  add_ended_life(run.dir(), first);
  CHECK_FALSE(fs::exists(run.path("life.json")));
  run.publish(20);
  CHECK(run.close()->reason == "asked to stop");

  // The second goes on from 20, saves 30, is killed after 33 in the middle of a line.
  add_lost_steps(run.dir(), 20, false);
  CHECK(last_lives(run.dir(), 5).at(0).lost_steps == 0);
  static_cast<void>(run.open(2, 20));
  run.publish(30);
  run.log(1, 33);
  std::ofstream(run.path("log.jsonl"), std::ios::app) << "{\"step\":34,\"st";
  const auto killed = run.close();
  REQUIRE(killed);
  CHECK(killed->life == 2);
  CHECK(killed->step == 33);
  CHECK(killed->saved_step == 30);
  CHECK_FALSE(killed->lost_steps);

  // The start after it is killed before it has written its own record: the line stays one line.
  CHECK(run.close()->life == 2);
  CHECK(last_lives(run.dir(), 5).size() == 2);
  add_lost_steps(run.dir(), 30, false);
  const auto lives = last_lives(run.dir(), 5);
  REQUIRE(lives.size() == 2);
  CHECK(lives[0].lost_steps == 0);
  CHECK(lives[1].lost_steps == 3);
}

TEST_CASE("lives that never went on lose nothing, and hide nothing") {
  const Run run;
  static_cast<void>(run.open(1, 0));
  run.log(1, 8);
  CHECK(run.close()->step == 8);
  for (index_t number = 2; number <= 3; ++number) {  // stopped while they load
    LifeRecord early;
    early.life = number;
    write_open_life(run.dir(), early);
    CHECK(run.close()->life == number);
  }
  add_lost_steps(run.dir(), 0, false);
  const auto lives = last_lives(run.dir(), 5);
  REQUIRE(lives.size() == 3);
  CHECK(lives[0].lost_steps == 8);
  CHECK(lives[1].lost_steps == 0);
  CHECK(lives[2].lost_steps == 0);
  add_lost_steps(run.dir(), 8, false);  // known is known
  CHECK(last_lives(run.dir(), 5).at(0).lost_steps == 8);
}

TEST_CASE("lives without anything new are bounded, also those that were asked to stop at once") {
  const Run run;
  index_t number = 0;
  const auto end = [&](ExitCode code, const std::string& reason, bool stepped, index_t saved) {
    LifeRecord life;
    life.life = ++number;
    life.from_step = 10;
    if (stepped) life.first_step_seconds = 1;
    add_ended_life(run.dir(), closed_life(life, {ExitRecord{code, reason, 10, saved}, 5, {}, {}}));
  };
  const auto cut_short = [&] {
    end(ExitCode::retry, "asked to stop by a signal before the first step", false, 10);
  };
  const auto fruitless = [&] { end(ExitCode::peer_lost, "rank 1 is lost", true, 10); };
  const auto too_many = [&] { return lives_without_progress(run.dir(), 9).are_too_many(); };
  CHECK_FALSE(too_many());
  for (const bool last : {false, false, true}) {
    cut_short();
    CHECK(too_many() == last);
  }
  end(ExitCode::retry, "asked to stop by a signal", true, 12);
  for (const bool last : {false, false, true}) {
    fruitless();
    CHECK(too_many() == last);
  }
  end(ExitCode::retry, "asked to stop by a signal", true, 12);
  fruitless();
  cut_short();  // forgiven
  fruitless();
  CHECK_FALSE(too_many());
  fruitless();
  CHECK(too_many());
}

TEST_CASE("an open life that has ended already is none") {
  const Run run;
  const LifeRecord first = closed_life(
      run.open(1, 0), {ExitRecord{ExitCode::retry, "asked to stop", 20, 20}, 5, {}, {}});
  CHECK(read_open_life(run.dir())->life == 1);
  add_ended_life(run.dir(), first);
  static_cast<void>(run.open(1, 0));  // a write that had hung
  std::ofstream(run.path("lives.jsonl"), std::ios::app) << "# mine\n";
  CHECK_FALSE(read_open_life(run.dir()));
  CHECK(run.close()->reason == "asked to stop");
  static_cast<void>(run.open(2, 20));
  CHECK(read_open_life(run.dir())->life == 2);
}

TEST_CASE("lives that could not be recorded are counted by Slurm's restarts") {
  const Run run;
  CHECK(unknown_lives(run.dir(), "7", 0) == 0);
  CHECK(unknown_lives(run.dir(), "7", 2) == 2);
  LifeRecord life;
  life.job = "7";
  life.restart = 3;
  write_open_life(run.dir(), life);
  CHECK(unknown_lives(run.dir(), "7", 3) == 0);  // it is this one
  CHECK(unknown_lives(run.dir(), "8", 3) == 3);
  add_ended_life(run.dir(), closed_life(life, {}));
  CHECK(unknown_lives(run.dir(), "7", 4) == 0);
  CHECK(unknown_lives(run.dir(), "7", 6) == 2);
  fs::remove(run.path("lives.jsonl"));
  fs::create_directory(run.path("lives.jsonl"));  // cannot be read
  CHECK(unknown_lives(run.dir(), "7", 6) == 2);   // this process has written down the third
}

TEST_CASE("lines that are no records stay, half a line goes") {
  const Run run;
  run.write("lives.jsonl",
            "{\"life\":1,\"reason\":\"a\",\"from_step\":0,\"step\":9}\n# mine\n{\"life\":2,\"rea");
  static_cast<void>(run.open(2, 5));
  run.log(1, 7);
  run.publish(5);
  CHECK(run.close()->life == 2);
  const std::string text = read_text_file(run.path("lives.jsonl"));
  CHECK(text.find("# mine\n{\"life\":2,\"job\"") != std::string::npos);
  CHECK(text.ends_with("}\n"));
  add_lost_steps(run.dir(), 5, false);
  const auto lives = last_lives(run.dir(), 5);
  REQUIRE(lives.size() == 2);
  CHECK_FALSE(lives[0].lost_steps);  // the second went on from somewhere: too late to know
  CHECK(lives[1].lost_steps == 2);
}

TEST_CASE("an open record that cannot be understood is none; one that cannot be read is an error") {
  const Run run;
  run.write("life.json", "{\"life\":");
  CHECK_FALSE(run.close());
  run.write("life.json", "");
  CHECK_FALSE(run.close());
  fs::remove(run.path("life.json"));
  fs::create_directory(run.path("life.json"));
  CHECK_THROWS_AS(run.close(), Error);
  forget_open_life(run.dir());  // does not throw
  fs::remove(run.path("life.json"));

  // exit.json of nobody knows what: the life is closed without it.
  static_cast<void>(run.open(4, 0));
  run.write("exit.json", "{\"code\":\"75\"}");
  run.log(1, 2);
  CHECK(run.close()->reason == "ended without a word");
  fs::remove(run.path("lives.jsonl"));
  fs::create_directory(run.path("lives.jsonl"));
  CHECK_THROWS_AS(add_ended_life(run.dir(), LifeRecord{}), Error);
}

}  // namespace t3d
