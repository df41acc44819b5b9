// A log that grows, is torn, is cut back, is put in the place of another.
#include "record/log/step_follower.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "io/posix_file.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"

namespace t3d {
namespace {

std::string line(index_t step, double loss = 1) {
  return fmt::format("{{\"step\":{},\"steps\":9,\"loss\":{}}}\n", step, loss);
}

void append(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::app) << text;
}

}  // namespace

TEST_CASE("holes of a log that is followed are known, and forgotten with it") {
  const test::ScratchFolder folder("follow");
  const std::string path = folder.path() + "/log.jsonl";
  append(path, line(1) + line(4));
  StepFollower follower(path);
  follower.read_on();
  CHECK(follower.missing().text() == "steps 2 to 3");
  append(path, line(6));
  follower.read_on();
  CHECK(follower.missing().text() == "steps 2 to 3 and 5");
  std::filesystem::resize_file(path, line(1).size());
  append(path, line(2));
  follower.read_on();
  CHECK(follower.missing().count() == 0);
}

TEST_CASE("a log is followed line by line") {
  const test::ScratchFolder folder("follow");
  const std::string path = folder.path() + "/log.jsonl";
  StepFollower follower(path);
  follower.read_on();
  CHECK(follower.losses().empty());
  append(path, line(1) + line(2));
  follower.read_on();
  CHECK(follower.losses().size() == 2);
  append(path, line(3).substr(0, 9));
  follower.read_on();
  CHECK(follower.losses().size() == 2);
  append(path, line(3).substr(9) + "no record\n{\"step\":4,\"loss\":null}\n");
  follower.read_on();
  CHECK(follower.losses().size() == 3);
  CHECK(follower.last()->step == 4);

  SECTION("cut back and written on") {
    write_text_durably(path, line(1) + line(2, 7));
    follower.read_on();
    CHECK(follower.losses() == std::vector<std::pair<index_t, double>>{{1, 1}, {2, 7}});
  }
  SECTION("another one, as long as before or longer") {
    std::string text;
    for (index_t step = 1; step <= 8; ++step) text += line(step, 5);
    write_text_durably(path, text);
    follower.read_on();
    CHECK(follower.losses().size() == 8);
    CHECK(follower.losses().front().second == 5);
  }
  SECTION("gone") {
    std::filesystem::remove(path);
    follower.read_on();
    CHECK_FALSE(follower.last().has_value());
  }
}

TEST_CASE("of a long log the end is read") {
  const test::ScratchFolder folder("follow");
  const std::string path = folder.path() + "/log.jsonl";
  std::string text;
  for (index_t step = 1000; step < 2000; ++step) text += line(step);
  append(path, text);
  const auto size = std::ssize(line(1000));
  StepFollower follower(path, 10 * size + 3);
  follower.read_on();
  CHECK(follower.losses().size() == 10);
  CHECK(follower.losses().front().first == 1990);
  append(path, line(2000));
  follower.read_on();
  CHECK(follower.losses().size() == 11);
}

}  // namespace t3d
