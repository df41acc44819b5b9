// log.csv: columns that come later, what is cut back, what is not ours.
#include "record/log/csv_log.hpp"

#include <filesystem>
#include <fstream>
#include <limits>

#include "core/error.hpp"
#include "support/bytes_read.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"

namespace t3d {
namespace {

StepRecord example(index_t step) {
  StepRecord record;
  record.step = step;
  record.steps = 9;
  record.loss = 1.0 / 3;
  record.grad_norm = 2;
  record.lr = 1e-300;
  record.seconds = 0.5;
  record.imbalance = std::numeric_limits<double>::quiet_NaN();
  return record;
}

const std::string kNames =
    "step,steps,loss,grad_norm,lr,seconds,tokens,tokens_per_second,comm_fraction,memory_bytes";
const std::string kNumbers = ",9,0.3333333333333333,2,1e-300,0.5,0,0,0,0";

}  // namespace

TEST_CASE("a line for each step; a number that comes later gets a column") {
  const test::ScratchFolder folder("csv");
  const std::string path = folder.path() + "/log.csv";
  {
    CsvLog log(path);
    CHECK(log.put(example(1)).empty());
    StepRecord validated = example(2);
    validated.validations = {{"a, \"b\"", 7.5}};
    CHECK(log.put(validated).empty());
  }
  CsvLog log(path);  // of the next life
  StepRecord last = example(3);
  last.phase_seconds["read"] = 0.25;
  CHECK(log.put(last).empty());
  CHECK(log.put(example(4)).empty());
  CHECK(read_text_file(path) == kNames + ",\"valid_losses/a, \"\"b\"\"\",phase_seconds/read\n" +
                                    "1" + kNumbers + ",,\n2" + kNumbers + ",7.5,\n3" + kNumbers +
                                    ",,0.25\n4" + kNumbers + ",,\n");
}

TEST_CASE("the spreadsheet is cut back to a step") {
  const test::ScratchFolder folder("csv");
  const std::string path = folder.path() + "/log.csv";
  const auto kept = [&](const std::string& text) {
    write_text_durably(path, text);
    return text.substr(0, static_cast<std::size_t>(csv_bytes_until(path, 2)));
  };
  CHECK(kept("step,steps,loss\n1,9,3\n2,9,2\n3,9,1\n") == "step,steps,loss\n1,9,3\n2,9,2\n");
  CHECK(kept("step,steps,loss\n1,9,3\n2,9") == "step,steps,loss\n1,9,3\n");
  CHECK(kept("step,steps\n1,9\n1") == "step,steps\n1,9\n");
  CHECK(kept("step,steps,lo").empty());
  CHECK(kept("step,steps\n3,9\n") == "step,steps\n");
}

TEST_CASE("of a long spreadsheet a start reads the beginning and the end") {
  const test::ScratchFolder folder("csv");
  const std::string path = folder.path() + "/log.csv";
  write_text_durably(path, "step,steps\n1,9\n2,9\n");
  std::filesystem::resize_file(path, 1'000'000'000);  // what lies between is never looked at
  std::ofstream(path, std::ios::app) << "\n1001,9\n1002,9\n1005,9\n";
  const index_t before = test::bytes_read_so_far();
  const StepsThere steps = csv_steps(path);
  CHECK(steps.first == 1);
  CHECK(steps.missing.last() == 1005);
  CHECK(steps.missing.ranges() == std::vector<StepRange>{{1003, 1004}});
  CHECK(test::bytes_read_so_far() - before < 60'000'000);
  // Whose end has no steps is looked through.
  write_text_durably(path, "step,steps\n1,9\n3,9\n" + std::string(1000, 'x') + "\n");
  CHECK(csv_steps(path, 500).missing.last() == 3);
}

TEST_CASE("a spreadsheet of somebody else stays") {
  const std::string theirs = "name,points\n7,3\n8";
  const test::ScratchFolder folder("csv");
  const std::string path = folder.path() + "/log.csv";
  write_text_durably(path, theirs);
  CHECK(csv_bytes_until(path, 2) == file_size(path));
  CHECK_THROWS_WITH(CsvLog(path), test::contains("is not a log of steps"));
  CHECK(read_text_file(path) == theirs);
}

}  // namespace t3d
