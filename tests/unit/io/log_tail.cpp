// The last lines of a file, whatever their lengths, without its beginning.
#include "io/log_tail.hpp"

#include <filesystem>
#include <fstream>

#include "core/error.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"

namespace t3d {

TEST_CASE("the last lines of a file") {
  const test::ScratchFolder folder("log_tail");
  const std::string path = folder.path() + "/log";
  using Lines = std::vector<std::string>;
  CHECK(last_lines(path, 3).empty());
  const auto of = [&](const std::string& text, index_t lines, index_t most = 4 << 20) {
    std::ofstream(path) << text;
    return last_lines(path, lines, most);
  };
  CHECK(of("", 3).empty());
  CHECK(of("half a line", 3).empty());
  CHECK(of("a\nb\nhalf", 3) == Lines{"a", "b"});
  CHECK(of("a\n\nc\nd\n", 3) == Lines{"", "c", "d"});
  CHECK(of("a\nb\n", 0).empty());
  // A line that may have begun before what is read is none.
  CHECK(of("abc\ndef\nghi\n", 9, 7) == Lines{"ghi"});
  CHECK(of("abc\ndef\nghi\n", 9, 8) == Lines{"ghi"});  // that the line is whole is not seen
  CHECK(of("abcdefghi\n", 9, 5).empty());

  // Long lines: the look is widened.
  std::string text;
  for (int line = 0; line < 300; ++line)
    text += std::to_string(line) + std::string(5000, 'x') + "\n";
  const Lines long_lines = of(text, 50);
  REQUIRE(long_lines.size() == 50);
  CHECK(long_lines.front().starts_with("250x"));
  CHECK(long_lines.back().starts_with("299x"));

  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  CHECK_THROWS_AS(last_lines(path, 3), Error);
}

TEST_CASE("the last steps of a log with strange lines in it") {
  const test::ScratchFolder folder("log_steps");
  std::ofstream(folder.path() + "/log.jsonl")
      << R"({"step":1,"steps":9,"loss":3.5,"seconds":0.5,"tokens_per_second":10})"
      << "\n"
      << "not json\n[1,2]\n{\"step\":\"x\"}\n{\"step\":1e400}\n"
      << std::string(100000, '[') << "\n"
      << R"({"step":2,"steps":-3,"loss":null,"valid_loss":2.5,"valid_loss_whole":2.25,"seconds":"long"})"
      << "\n"
      << R"({"step":3,"st)";
  const auto steps = last_steps(folder.path(), 50);
  REQUIRE(steps.size() == 2);
  CHECK(steps[0].steps == 9);
  CHECK(steps[0].loss == 3.5);
  CHECK(steps[1].step == 2);
  CHECK_FALSE(steps[1].steps);
  CHECK_FALSE(steps[1].loss);
  CHECK(steps[1].valid_loss == 2.5);
  CHECK(steps[1].valid_loss_whole == 2.25);
  CHECK_FALSE(steps[1].seconds);
}

}  // namespace t3d
