// The screen of watch: what fits, what is shown of many ranks, letters of terminals without UTF-8.
#include "tools/watch/watch_frame.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "support/catch.hpp"
#include "support/scratch_folder.hpp"

namespace t3d {
namespace {

/// A run of so many steps and ranks; the last rank is the slowest.
class Run {
 public:
  /// Without the records of steps from `hole` to `hole_end`.
  Run(index_t steps, int ranks, index_t hole = 0, index_t hole_end = 0)
      : folder_("watch"), follower(folder_.path() + "/log.jsonl") {
    std::ofstream file(folder_.path() + "/log.jsonl");
    for (index_t step = 1; step <= steps; ++step) {
      if (step >= hole && step <= hole_end) continue;
      file << fmt::format(R"({{"step":{},"steps":2000,"loss":{},"seconds":0.5)", step,
                          10.0 / static_cast<double>(step));
      file << R"(,"grad_norm":1.5,"lr":0.001,"mfu":0.4,"rank_milliseconds":{"own":[)";
      for (int rank = 0; rank < ranks; ++rank)
        file << (rank > 0 ? "," : "") << (rank + 1 == ranks ? 80 : 40);
      file << fmt::format("],\"measured_step\":{}}}}}\n", step);
    }
    file.close();
    follower.read_on();
    status.dir = "runs/näher";
    status.now = 1.8e9;
    status.state = RunState::running;
    status.last = LoggedStep{steps, 2000, 2.5, {}, 0.5, 100.0};
    status.median_seconds = 0.5;
    status.events = {"warning: one", std::string(300, 'x')};
    LifeRecord life;
    life.why = "new run";
    life.from_step = 0;
    status.life = life;
  }

 private:
  test::ScratchFolder folder_;

 public:
  StepFollower follower;
  RunStatus status;
};

index_t letters(const std::string& text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace

TEST_CASE("the screen fits the window, whatever that is") {
  for (const int ranks : {1, 4, 64, 256})
    for (const index_t steps : {1, 2, 3, 1000}) {
      Run run(steps, ranks);
      for (const auto& [columns, rows] : {std::pair{80, 24}, {40, 10}, {7, 3}, {200, 60}, {1, 1}}) {
        const auto lines = watch_frame(run.status, run.follower, {columns, rows, true, false});
        CHECK(std::ssize(lines) <= rows);
        for (const std::string& line : lines) CHECK(letters(line) <= columns);
      }
    }
}

TEST_CASE("the screen says what is known") {
  Run run(1000, 4);
  const std::string text = joined(watch_frame(run.status, run.follower, {80, 40, true, false}));
  CHECK_THAT(text, test::contains("runs/näher  running"));
  CHECK_THAT(text, test::contains("1000 of 2000  50.0 %  left 08:20, until"));
  CHECK_THAT(text, test::contains("loss, steps 1 to 1000; below, the last 100"));
  CHECK_THAT(text, test::contains("ranks in step 1000: ms without waiting\n"));
  CHECK_THAT(text, test::contains("        3       80 ███"));
  CHECK_THAT(text, test::contains("        0       40 ███"));
  CHECK_THAT(text, test::contains("···"));
  CHECK_THAT(text, test::contains("warning: one"));
}

TEST_CASE("more ranks than rows are shown in groups, by their slowest") {
  Run run(3, 256);
  const std::string text = joined(watch_frame(run.status, run.follower, {80, 30, true, false}));
  CHECK_THAT(text, test::contains("slowest of"));
  // The slow one is the last: exactly one full bar.
  index_t full = 0;
  for (auto at = text.find("       80 █"); at != std::string::npos;
       at = text.find("       80 █", at + 1))
    ++full;
  CHECK(full == 1);
}

TEST_CASE("a terminal without UTF-8 gets ASCII, one without colours none") {
  Run run(1000, 4);
  const std::string plain = joined(watch_frame(run.status, run.follower, {80, 40, false, false}));
  for (const char letter : plain) CHECK(static_cast<unsigned char>(letter) < 0x80);
  CHECK(plain.find('\033') == std::string::npos);
  CHECK_THAT(plain, test::contains("runs/n?her"));
  CHECK_THAT(plain, test::contains("####"));
  const auto coloured = watch_frame(run.status, run.follower, {80, 40, false, true});
  CHECK(coloured.front().starts_with("\033[1;32m"));
  CHECK(coloured.front().ends_with("\033[0m"));
}

TEST_CASE("a curve has the highest value at the top and every value visible") {
  const auto rows = curve({0, 1, 2, 3}, 4, 2, false);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0] == "  .|");
  CHECK(rows[1] == ".|||");
  CHECK(curve({1, 1, 1}, 10, 1, true) == std::vector<std::string>{"▁▁▁"});
  CHECK(letters(curve(std::vector<double>(1000, 2.0), 70, 1, true).front()) == 70);
}

TEST_CASE("a hole of the log is named and not drawn over") {
  Run run(10, 2, 4, 6);
  add_missing(run.status, run.follower.missing());
  const auto lines = watch_frame(run.status, run.follower, {80, 40, false, false});
  CHECK_THAT(joined(lines), test::contains("missing   steps 4 to 6 of log.jsonl"));
  const auto lowest = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.ends_with(" 1.0000");
  });
  REQUIRE(lowest != lines.end());
  CHECK_THAT(*lowest, test::contains("|||   ...."));
  CHECK_THAT(watch_line(run.status), test::contains("lacks steps 4 to 6"));
  run.status.saved_step = 12;
  add_missing(run.status, run.follower.missing());
  CHECK(run.status.missing.text() == "steps 4 to 6 and 11");  // it lives: step 12 may be evaluated
  CHECK(curve({NAN, 1, NAN}, 3, 1, false) == std::vector<std::string>{" . "});
}

TEST_CASE("a run without steps has a screen, too") {
  Run run(0, 0);
  run.status.last.reset();
  run.status.state = RunState::starting;
  CHECK_THAT(joined(watch_frame(run.status, run.follower, {})),
             test::contains("none in log.jsonl"));
}

}  // namespace t3d
