// Which ranks are made slower, and what of [emulate] is refused (core/slowdown.hpp).
#include "core/slowdown.hpp"

#include <limits>

#include "core/error.hpp"
#include "support/catch.hpp"

using namespace t3d;
using t3d::test::contains;

namespace {

/// What is said of an entry, and that it is the input's fault.
std::string refusal(const std::vector<double>& factors, const std::vector<std::string>& changes,
                    int ranks = 2) {
  try {
    const SlowdownSchedule schedule(factors, changes, ranks);
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::config);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("nobody is slower where nothing is said", "[slowdown]") {
  const SlowdownSchedule none;
  CHECK(!none.any());
  CHECK(none.factor(0, 1) == 1);
  const SlowdownSchedule empty({}, {}, 3);
  CHECK(!empty.any());
  CHECK(empty.factor(2, 100) == 1);
}

TEST_CASE("a change counts from its step on, of one rank only", "[slowdown]") {
  const SlowdownSchedule schedule({1, 1.5}, {"6:1:2"}, 2);
  CHECK(schedule.any());
  CHECK(schedule.factor(1, 1) == 1.5);
  CHECK(schedule.factor(1, 5) == 1.5);
  CHECK(schedule.factor(1, 6) == 2);
  CHECK(schedule.factor(1, 1000) == 2);
  CHECK(schedule.factor(0, 6) == 1);
}

TEST_CASE("changes count by their steps, not by their order in the input", "[slowdown]") {
  const SlowdownSchedule schedule({}, {"30:0:1", "10:0:4", "20:0:3"}, 1);
  CHECK(schedule.factor(0, 9) == 1);
  CHECK(schedule.factor(0, 10) == 4);
  CHECK(schedule.factor(0, 20) == 3);
  CHECK(schedule.factor(0, 29) == 3);
  CHECK(schedule.factor(0, 30) == 1);
}

TEST_CASE("factors that are none, or too many or few of them", "[slowdown]") {
  CHECK_THAT(refusal({1, 1, 2}, {}), contains("emulate.slowdown has 3 factors, and there are 2"));
  CHECK_THAT(refusal({2}, {}), contains("has 1 factor"));
  for (const double factor : {0.5, 0.0, -2.0, 1000.5, std::numeric_limits<double>::quiet_NaN(),
                              std::numeric_limits<double>::infinity()}) {
    INFO(factor);
    CHECK_THAT(refusal({1, factor}, {}), contains("is not a factor of at least 1"));
  }
}

TEST_CASE("entries of the schedule that cannot be read are named", "[slowdown]") {
  for (const char* text :
       {"",        "x:y",     "6",       "6:1",     "6:1:",    ":1:2",       "6::2",
        "6:1:2:3", "6 :1:2",  "6:1: 2",  "6:1:2s",  "6.5:1:2", "6:1.5:2",    "0:1:2",
        "-3:1:2",  "6:1:0.9", "6:1:nan", "6:1:inf", "6:1:-2",  "6:1:1000.5", "6:1:1e9"}) {
    INFO(text);
    const std::string answer = refusal({}, {"3:0:2", text});
    CHECK_THAT(answer, contains("STEP:RANK:FACTOR"));
    CHECK_THAT(answer, contains(fmt::format("\"{}\"", text)));
  }
}

TEST_CASE("a rank changes once at a step", "[slowdown]") {
  CHECK(refusal({}, {"6:1:1000", "6:0:2", "7:1:3"}).empty());
  CHECK_THAT(refusal({}, {"6:1:2", "3:1:2", "6:1:2"}), contains("names rank 1 twice at step 6"));
}

TEST_CASE("an entry that names an absent rank says how many there are", "[slowdown]") {
  CHECK_THAT(refusal({}, {"6:2:2"}), contains("names rank 2, and the ranks are 0 to 1"));
  CHECK_THAT(refusal({}, {"6:-1:2"}), contains("names rank -1"));
  CHECK_THAT(refusal({}, {"6:1:2"}, 1), contains("names rank 1, and there is only rank 0"));
  CHECK(refusal({}, {"6:1:2"}).empty());
}
