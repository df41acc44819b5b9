// Holes of a log: what they are called, what is no record, logs of which only the end is read.
#include "io/lives/missing_steps.hpp"

#include <fmt/format.h>

#include "io/posix_file.hpp"
#include "record/log/log_index.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"

namespace t3d {
namespace {

MissingSteps heard(std::initializer_list<index_t> steps, std::optional<index_t> last = {}) {
  MissingSteps missing(last);
  for (const index_t step : steps) missing.add(step);
  return missing;
}

std::string line(index_t step) { return fmt::format("{{\"step\":{},\"loss\":1}}\n", step); }

}  // namespace

TEST_CASE("steps that were not heard are missing, each once") {
  CHECK(heard({7, 8, 9}).text().empty());
  CHECK(heard({1, 2, 4}).text() == "step 3");
  CHECK(heard({1, 4}).text() == "steps 2 to 3");
  const MissingSteps missing = heard({1, 3, 3, 2, 10, 12});
  CHECK(missing.text() == "steps 2, 4 to 9 and 11");
  CHECK(missing.ranges() == std::vector<StepRange>{{2, 2}, {4, 9}, {11, 11}});
  CHECK(missing.count() == 8);
  CHECK(heard({3}, 0).text() == "steps 1 to 2");
}

TEST_CASE("a log that ends before it should lacks the steps behind its end") {
  MissingSteps missing = heard({1, 2});
  missing.expect_up_to(2);
  CHECK(missing.count() == 0);
  missing.expect_up_to(4);
  CHECK(missing.text() == "steps 3 to 4");
  MissingSteps nothing;
  nothing.expect_up_to(4);
  CHECK(nothing.count() == 0);
}

TEST_CASE("of very many holes the first are named and all are counted") {
  MissingSteps missing;
  for (index_t step = 1; step <= 6001; step += 2) missing.add(step);
  CHECK(missing.text() == "steps 2, 4, 6, 8, 10, 12 and 2994 more times");
  CHECK(missing.count() == 3000);
  CHECK(missing.ranges().size() == MissingSteps::kMostRanges);
  MissingSteps joined;
  for (const index_t step : {5, 6, 7}) joined.miss({step, step});
  CHECK(joined.text() == "steps 5 to 7");
}

TEST_CASE("a line has a step only where it is a whole record") {
  CHECK(step_of_line("{\"step\":12,\"loss\":1}") == 12);
  CHECK(step_of_line("{\"loss\":1,\"step\":12}") == 12);
  CHECK_FALSE(step_of_line("{\"step\":12,\"loss\":"));
  CHECK_FALSE(step_of_line("{\"step\":12"));
  CHECK_FALSE(step_of_line("{\"step\":-12,\"loss\":1}"));
  CHECK_FALSE(step_of_line("{\"step\":1.5,\"loss\":1}"));
  CHECK_FALSE(step_of_line("{\"step\":99999999999999999999,\"loss\":1}"));
  CHECK_FALSE(step_of_line(""));
}

TEST_CASE("the holes of a file, or of its end") {
  const test::ScratchFolder folder("missing");
  const std::string path = folder.path() + "/log.jsonl";
  CHECK(missing_steps(path).count() == 0);
  write_text_durably(path, line(1) + line(3) + "no record\n" + line(4) + line(7) + "{\"step\":9");
  CHECK(missing_steps(path).text() == "steps 2 and 5 to 6");
  CHECK(missing_steps(path).last() == 7);
  // The end begins in the middle of the line of step 3.
  const index_t end = file_size(path) - std::ssize(line(1)) - 3;
  CHECK(missing_steps(path, end).text() == "steps 5 to 6");
}

}  // namespace t3d
