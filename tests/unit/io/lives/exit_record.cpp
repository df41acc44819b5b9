// exit.json: what it holds, that it is replaced at once, and that a new training takes it away.
#include "io/lives/exit_record.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "io/posix_file.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"

namespace t3d {

TEST_CASE("the record of an end") {
  const test::ScratchFolder folder("exit_record");
  const std::string path = folder.path() + "/exit.json";
  const auto read = [&] { return nlohmann::json::parse(read_text_file(path)); };

  write_exit_record(folder.path(), {ExitCode::retry, "asked to stop", 12, 10}, 0);
  CHECK(read() == nlohmann::json{{"code", 75},
                                 {"reason", "asked to stop"},
                                 {"step", 12},
                                 {"checkpoint", 10},
                                 {"continue", false},
                                 {"requeues", false},
                                 {"paused", false},
                                 {"cluster", ""},
                                 {"job", ""},
                                 {"restart", 0},
                                 {"token", ""}});
  CHECK_FALSE(read_exit_record(folder.path() + "/absent"));
  CHECK(read_exit_record(folder.path())->code == ExitCode::retry);
  CHECK(read_exit_record(folder.path())->checkpoint == 10);
  // Another one takes its place; bytes that are not UTF-8 do not matter.
  write_exit_record(folder.path(), {ExitCode::peer_lost, "in \xff", 3, {}, true, true, true}, 1);
  CHECK(read()["code"] == 76);
  CHECK(read_exit_record(folder.path())->goes_on);
  CHECK(read_exit_record(folder.path())->requeues);
  CHECK(read_exit_record(folder.path())->paused);
  CHECK_FALSE(read_exit_record(folder.path())->checkpoint);
  CHECK(read()["checkpoint"].is_null());

  index_t files = 0;
  for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(folder.path()))
    ++files;
  CHECK(files == 1);

  remove_exit_record(folder.path());
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK_NOTHROW(remove_exit_record(folder.path()));  // there is none any more
  CHECK_THROWS_AS(write_exit_record(folder.path() + "/absent", {}, 0), Error);
}

TEST_CASE("a life does not write over the end of another") {
  const test::ScratchFolder folder("exit_record");
  ExitRecord ended{ExitCode::done, "all steps done", 12, 12};
  ended.epoch = {"c", "7", 2, "bb"};
  write_exit_record(folder.path(), ended, 0);
  const ExitRecord read = read_exit_record(folder.path()).value();
  CHECK(read.epoch.cluster == "c");
  CHECK(read.epoch.job == "7");
  CHECK(read.epoch.restart == 2);
  CHECK(read.epoch.token == "bb");
  ExitRecord late{ExitCode::peer_lost, "a left-over", 3, {}};
  late.epoch = {"c", "7", 1, "aa"};
  CHECK_THROWS_AS(write_exit_record(folder.path(), late, 1), Error);
  CHECK(read_exit_record(folder.path())->code == ExitCode::done);
  ended.undecided = true;
  write_exit_record(folder.path(), ended, 1);  // another rank of the same life
  CHECK(read_exit_record(folder.path())->undecided);
}

TEST_CASE("two threads of a rank that write the record of an end at once") {
  const test::ScratchFolder folder("exit_record");
  const auto write = [&](const std::string& reason, std::optional<Error>& fault) {
    constexpr int kTimes = 200;
    try {
      for (int time = 0; time < kTimes; ++time) {
        write_exit_record(folder.path(), {ExitCode::peer_lost, reason, 1, {}}, 0);
        (void)read_exit_record(folder.path());  // one of the two, and whole
      }
    } catch (const Error& error) {
      fault = error;
    }
  };
  std::optional<Error> faults[2];
  std::thread other([&] { write("rank 3 is lost: its node does not answer", faults[1]); });
  write("no answer", faults[0]);
  other.join();
  for (const std::optional<Error>& fault : faults) {
    INFO((fault ? fault->what() : "written"));
    CHECK_FALSE(fault);
  }
}

}  // namespace t3d
