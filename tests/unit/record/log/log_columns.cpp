// A log as columns: exact values, what is left out and said, and what is thinned.
#include "record/log/log_columns.hpp"

#include <fstream>

#include "core/error.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"

namespace t3d {
namespace {

class WrittenLog {
 public:
  explicit WrittenLog(const std::string& text) { std::ofstream(path(), std::ios::binary) << text; }
  [[nodiscard]] std::string path() const { return folder_.path() + "/log.jsonl"; }
  [[nodiscard]] LogColumns read(const LogLimits& limits = {}) const {
    return read_log_columns(path(), limits);
  }

 private:
  test::ScratchFolder folder_{"log_columns"};
};

using Rows = std::vector<std::uint32_t>;
using Values = std::vector<double>;

std::string many_steps(int steps, int ranks) {
  std::string text;
  for (int step = 1; step <= steps; ++step) {
    text += fmt::format("{{\"step\":{},\"loss\":{}", step, 0.1 * step);
    if (step == 7) text += ",\"valid_loss\":2.5";
    for (const char* key : {"own", "cpu"}) {
      text += key[0] == 'o' ? ",\"rank_milliseconds\":{\"own\":[" : ",\"cpu\":[";
      for (int rank = 0; rank < ranks; ++rank)
        text += fmt::format("{}{}", rank > 0 ? "," : "", step + 0.25 * rank);
      text += "]";
    }
    text += fmt::format(",\"measured_step\":{}}}}}\n", step);
  }
  return text;
}

}  // namespace

TEST_CASE("every number of a record is in its column, as it was written") {
  const WrittenLog file(
      "{\"step\":1,\"loss\":5.535871023622652,\"imbalance\":null,\"left_out\":[],\"name\":\"x\","
      "\"phase_seconds\":{\"bias "
      "gradient\":9.08e-05},\"slab_sequences\":[12,11],\"more\":[[1],2]}\n"
      "{\"step\":3,\"loss\":-1e300,\"imbalance\":0.5,\"left_out\":[4,6],\"emulated\":true,"
      "\"bytes_by_axis\":{\"d\":9007199254740993},\"slab_sequences\":[13],\"deep\":{\"a\":{\"b\":1}"
      "},"
      "\"list\":[{\"loss\":7}]}\n");
  const LogColumns log = file.read();
  CHECK(log.steps == Values{1, 2, 3});  // the second is a hole
  CHECK(log.find("step")->values == log.steps);
  CHECK(log.lines == 2);
  CHECK(log.emulated);
  CHECK_FALSE(log.cut);
  REQUIRE(log.find("loss"));
  CHECK(log.find("loss")->values == Values{5.535871023622652, -1e300});
  CHECK(log.find("imbalance")->rows == Rows{2});
  CHECK(log.find("left_out")->values == Values{0, 2});
  CHECK(log.find("phase_seconds.bias gradient")->values == Values{9.08e-05});
  CHECK(log.find("bytes_by_axis.d")->values == Values{9007199254740992});
  CHECK(log.find("slab_sequences", 0)->values == Values{12, 13});
  CHECK(log.find("slab_sequences", 1)->rows == Rows{0});
  CHECK(log.find("more", 1)->values == Values{2});
  for (const LogColumn& column : log.columns) CHECK(column.key.find("deep") == std::string::npos);
  CHECK_FALSE(log.find("name"));
  CHECK_FALSE(log.find("left_out", 0));
}

TEST_CASE("a hole has rows without numbers, also in a thinned log") {
  const std::string whole = many_steps(20, 1);
  std::string text;
  for (std::size_t at = 0, step = 1; at < whole.size(); ++step) {
    const std::size_t end = whole.find('\n', at) + 1;
    if (step != 4 && (step < 9 || step > 12)) text += whole.substr(at, end - at);
    at = end;
  }
  const WrittenLog file(text);
  const LogColumns log = file.read();
  CHECK(log.missing.text() == "steps 4 and 9 to 12");
  CHECK(log.hole_rows == 3);
  CHECK(log.steps == Values{1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15, 16, 17, 18, 19, 20});
  CHECK(log.find("loss")->rows == Rows{0, 1, 2, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16, 17});
  LogLimits few;
  few.rows = 5;  // one in three, the last, and step 7 with its validation
  const LogColumns thinned = file.read(few);
  CHECK(thinned.missing.text() == "steps 4 and 9 to 12");
  CHECK(thinned.steps == Values{1, 4, 5, 7, 8, 9, 12, 15, 18, 20});
  CHECK(thinned.find("loss")->rows == Rows{0, 2, 3, 4, 7, 8, 9});
}

TEST_CASE("a line that is cut, is no record or goes back is left out and counted") {
  const WrittenLog file(
      "{\"step\":1,\"loss\":5}\n\nnot json\n{\"loss\":4}\n{\"step\":1,\"loss\":9}\n{\"step\":-2}\n"
      "{\"step\":2,\"loss\":4}\n{\"step\":3,\"lo");
  const LogColumns log = file.read();
  CHECK(log.steps == Values{1, 2});
  CHECK(log.find("loss")->values == Values{5, 4});
  CHECK(log.lines == 7);
  CHECK(log.no_records == 4);
  CHECK(log.out_of_order == 1);
  CHECK(log.cut);
  CHECK(WrittenLog("").read().steps.empty());
  CHECK(read_log_columns("/nowhere/log.jsonl").steps.empty());
}

TEST_CASE("times of ranks that belong to no step are none") {
  const WrittenLog file(
      "{\"step\":1,\"rank_milliseconds\":{\"own\":[0,0],\"measured_step\":0}}\n"
      "{\"step\":2,\"rank_milliseconds\":{\"own\":[5,6],\"measured_step\":1}}\n");
  const LogColumns log = file.read();
  CHECK(log.find("rank_milliseconds.own", 1)->rows == Rows{1});
  CHECK(log.find("rank_milliseconds.own", 1)->values == Values{6});
}

TEST_CASE("a long log is thinned, and what stays is exact") {
  const WrittenLog file(many_steps(100, 4));
  SECTION("steps; those with a validation, the first and the last one stay") {
    const LogColumns log = file.read({30, 1 << 20, 1 << 20});
    CHECK(log.step_stride == 4);
    CHECK(log.steps.size() == 27);
    CHECK(log.steps.front() == 1);
    CHECK(log.steps[2] == 7);
    CHECK(log.steps.back() == 100);
    CHECK(log.find("valid_loss")->rows == Rows{2});
    CHECK(log.find("loss")->values[2] == 0.1 * 7);
  }
  SECTION("times of ranks") {
    const LogColumns log = file.read({1000, 250, 15});
    CHECK(log.step_stride == 1);
    CHECK(log.rank_stride == 2);
    CHECK(log.part_stride == 8);
    const LogColumn* own = log.find("rank_milliseconds.own", 3);
    REQUIRE(own);
    CHECK(own->rows.size() == 50);
    CHECK(own->rows[49] == 98);
    CHECK(own->values[49] == 99.75);
    CHECK(log.find("rank_milliseconds.cpu", 0)->rows[1] == 8);
    CHECK(log.find("loss")->values.size() == 100);
  }
}

}  // namespace t3d
