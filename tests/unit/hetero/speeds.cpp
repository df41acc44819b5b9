// Curves from work to seconds, and the file of speeds.
#include "hetero/speed/speeds.hpp"

#include <cmath>

#include "core/error.hpp"
#include "core/random.hpp"
#include "core/utf8.hpp"
#include "support/catch.hpp"

namespace t3d::test {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

TEST_CASE("a curve goes through its points and in proportion beyond them", "[speeds]") {
  TimeCurve curve;
  CHECK(curve.seconds(1) == kNever);
  CHECK(curve.seconds(0) == 0);
  CHECK(curve.trusted(5) == 0);
  curve.add(200, 3);
  curve.add(100, 2);
  CHECK(curve.seconds(100) == 2);
  CHECK(curve.seconds(150) == 2.5);
  CHECK(curve.seconds(200) == 3);
  CHECK(curve.seconds(50) == 1);
  CHECK(curve.seconds(400) == 6);
  CHECK(curve.seconds(0) == 0);
  CHECK(curve.least_seconds(400) == 6);  // at the second point's rate
  CHECK(curve.least_seconds(100) == 1.5);
  CHECK(curve.least_seconds(0) == 0);
  CHECK(curve.trusted(390) == 390);
  CHECK(curve.trusted(1000) == 400);
  curve.scale(2);
  CHECK(curve.seconds(150) == 5);
  curve.add(201, 7);  // within 1 % of 200
  CHECK(curve.points() == std::vector<TimeCurve::Point>{{100, 4}, {201, 7}});
}

TEST_CASE("more work never takes less time", "[speeds]") {
  TimeCurve curve;
  curve.add(100, 5);
  curve.add(200, 3);  // pooled with the one before
  curve.add(300, 8);
  CHECK(curve.seconds(100) == 4);
  CHECK(curve.seconds(150) == 4);
  CHECK(curve.seconds(200) == 4);
  CHECK(curve.seconds(250) == 6);
  CHECK(curve.points()[0].seconds == 5);  // as added
  curve.add(400, 1);                      // pools all four
  CHECK(curve.seconds(300) == 4.5);

  const RandomKey key{1, stream_of("curve")};
  for (index_t round = 0; round < 100; ++round) {
    TimeCurve random;
    for (index_t point = 0; point < 12; ++point)
      random.add(1 + 100 * random_uniform(key, 40 * round + point),
                 0.1 + random_uniform(key, 40 * round + 20 + point));
    double last = 0;
    for (double work = 0; work < 300; work += 0.5) {
      REQUIRE(random.seconds(work) >= last);
      last = random.seconds(work);
    }
    for (const TimeCurve::Point& point : random.points()) {  // by rounding, either
      const double here = random.seconds(point.work);
      REQUIRE(random.seconds(std::nextafter(point.work, 0)) <= here);
      REQUIRE(random.seconds(std::nextafter(point.work, kNever)) >= here);
    }
  }
}

TEST_CASE("a stated rate holds for any work, until something is measured", "[speeds]") {
  TimeCurve curve = TimeCurve::of_rate(4);
  CHECK(curve.seconds(2) == 0.5);
  CHECK(curve.trusted(1e30) == 1e30);
  curve.scale(2);
  CHECK(curve == TimeCurve::of_rate(2));
  curve.add(10, 1);
  CHECK(curve.points().size() == 1);
  CHECK(curve.seconds(20) == 2);
  CHECK(curve.trusted(1e30) == 20);
}

TEST_CASE("a second measurement at another shape adds its points", "[speeds]") {
  Speeds known, more;
  known.ranks.resize(2);
  known.ranks[0].curve(WorkClass::matmul).add(100, 1);
  known.ranks[1].curve(WorkClass::matmul) = TimeCurve::of_rate(50);
  more = known;
  more.ranks[0].curve(WorkClass::matmul) = {};
  more.ranks[0].curve(WorkClass::matmul).add(400, 2);
  more.ranks[0].error = 0.1;
  StepWork far;
  far.matmul = 300;
  CHECK(known.ranks[1].trusts(far));
  CHECK_FALSE(known.ranks[0].trusts(far));
  CHECK(known.ranks[0].seconds(far) == 3);
  known.join(more);
  CHECK(known.ranks[0].trusts(far));
  CHECK(known.ranks[0].seconds(far) == Approx(5.0 / 3));
  CHECK(known.ranks[0].error == 0.1);
  CHECK(known.ranks[1].curve(WorkClass::matmul) == TimeCurve::of_rate(50));
  far.whole = 1;
  CHECK_FALSE(known.ranks[0].trusts(far));
}

StepWork work() {
  StepWork work;
  work.matmul = 1000;
  work.streamed = 50;
  return work;
}

RankSpeed rank(double matmul, double streamed) {
  RankSpeed rank;
  rank.curve(WorkClass::matmul) = TimeCurve::of_rate(matmul);
  rank.curve(WorkClass::streamed) = TimeCurve::of_rate(streamed);
  return rank;
}

TEST_CASE("a rank's seconds are the sum over the classes that have work", "[speeds]") {
  CHECK(rank(100, 10).seconds(work()) == 15);
  StepWork more = work();
  more.whole = 1;
  CHECK(rank(100, 10).seconds(more) == kNever);
  CHECK(name_of(WorkClass::whole) == std::string("whole"));
}

TEST_CASE("ranks are equal within the tolerance, and never with one of speed 0", "[speeds]") {
  Speeds speeds;
  speeds.ranks = {rank(100, 10), rank(100, 10.5)};  // 15 and 14.76 s
  CHECK(speeds.equal(work(), 0.05));
  CHECK_FALSE(speeds.equal(work(), 0.01));
  speeds.ranks.emplace_back();
  CHECK_FALSE(speeds.equal(work(), 1e9));
  speeds.ranks = {RankSpeed{}, RankSpeed{}};
  CHECK_FALSE(speeds.equal(work(), 1e9));
}

TEST_CASE("ranks whose errors cover their difference are equal, in doubt", "[speeds]") {
  Speeds speeds;
  speeds.ranks = {rank(100, 10), rank(100, 10), rank(90, 9)};  // the last one 11 % slower
  CHECK_FALSE(speeds.equal(work(), 0.05));
  CHECK_FALSE(speeds.doubtful(work(), 0.05));
  for (const double error : {0.02, 1.0}) {
    speeds.ranks[2].error = speeds.ranks[0].error = error;
    CHECK(speeds.equal(work(), 0.05) == (error > 0.1));  // rank 1 was measured well
    CHECK(speeds.doubtful(work(), 0.05) == (error > 0.1));
    speeds.ranks[1].error = error;
    CHECK(speeds.equal(work(), 0.05));
    CHECK(speeds.doubtful(work(), 0.05));
    CHECK_FALSE(speeds.doubtful(work(), 0.2));
    speeds.ranks[1].error = 0;
  }
  speeds.ranks[0].error = speeds.ranks[1].error = speeds.ranks[2].error = 1;
  speeds.ranks[2].curve(WorkClass::matmul).scale(3);
  CHECK_FALSE(speeds.equal(work(), 0.05));  // too slow for any error
  Speeds again = speeds;
  again.ranks[0] = rank(50, 5);
  again.ranks[1] = rank(60, 6);
  again.ranks[1].error = 0.1;
  speeds.ranks[1].error = 0.05;
  speeds.take_better(again);
  CHECK(speeds.ranks[0].curves == again.ranks[0].curves);
  CHECK(speeds.ranks[1].curves != again.ranks[1].curves);
  CHECK(speeds.ranks[0].error == 0);
}

TEST_CASE("the file gives every number back bit for bit", "[speeds]") {
  Speeds speeds;
  speeds.ranks = {rank(1.0 / 3, 1e11 / 7), RankSpeed{}};
  RankSpeed measured;
  measured.node = "node \"a\"";
  measured.device = "NVIDIA H200";
  measured.free_bytes = (index_t{1} << 53) + 1;
  measured.error = 0.1 / 3;
  for (TimeCurve& curve : measured.curves) {
    curve.add(1e9 / 3, 0.1 / 3);
    curve.add(2e9 / 3, 0.1 / 7);
    curve.scale(1.1);
  }
  speeds.ranks.push_back(measured);
  speeds.inside = {1e-6 / 3, 1e-10 / 3};
  speeds.between = {1e-5 / 3, 1e-9 / 3};

  const std::string text = speeds.text();
  const Speeds read = parse_speeds(text, "speeds.json");
  CHECK(read.text() == text);
  REQUIRE(read.ranks.size() == 3);
  for (std::size_t n = 0; n < 3; ++n) CHECK(read.ranks[n].curves == speeds.ranks[n].curves);
  CHECK(read.ranks[2].node == measured.node);
  CHECK(read.ranks[2].device == measured.device);
  CHECK(read.ranks[2].free_bytes == measured.free_bytes);
  CHECK(read.ranks[2].error == measured.error);
  CHECK(read.inside == speeds.inside);
  CHECK(read.between == speeds.between);
}

/// A file with one rank: what stands for its matmul, and more fields.
std::string file(const std::string& matmul, const std::string& more = "") {
  return R"({"ranks": [{"matmul": )" + matmul + R"(, "attention": 1, "whole": 1, "streamed": 1)" +
         more + "}]}";
}

TEST_CASE("what may be left out of a file is left out", "[speeds]") {
  const Speeds speeds = parse_speeds(file("[[200, 2], [100, 1]]"), "s");
  REQUIRE(speeds.ranks.size() == 1);
  CHECK(speeds.ranks[0].seconds(WorkClass::matmul, work()) == 10);
  CHECK(speeds.ranks[0].node.empty());
  CHECK(parse_speeds(file("0"), "s").ranks[0].curve(WorkClass::matmul).empty());
  CHECK(parse_speeds(file("[]"), "s").ranks[0].curve(WorkClass::matmul).empty());
}

std::string with_link(const std::string& link) {
  std::string text = file("1");
  return text.insert(text.rfind('}'), ", \"inside\": " + link);
}

TEST_CASE("a bad file is refused with its name and the field", "[speeds]") {
  const std::string none = R"({"matmul": 0, "attention": 0, "whole": [], "streamed": 0})";
  const std::pair<std::string, const char*> cases[] = {
      {"", "not JSON"},
      {"nonsense", "not JSON"},
      {file("NaN"), "not JSON"},
      {file("1e999"), "not JSON"},
      {"[]", "speeds: expected an object"},
      {"{}", "speeds: 'ranks' is missing"},
      {R"({"ranks": {}})", "ranks: expected a list"},
      {R"({"ranks": []})", "ranks: none of 0 ranks has any speed"},
      {R"({"ranks": [)" + none + "," + none + "]}", "ranks: none of 2 ranks has any speed"},
      {R"({"ranks": [3]})", "ranks[0]: expected an object"},
      {R"({"ranks": [{"matmul": 1}]})", "ranks[0]: 'attention' is missing"},
      {file("-1"), "ranks[0].matmul: -1 is not finite and >= 0"},
      {file("\"fast\""), "ranks[0].matmul: expected a rate or a list"},
      {file("[5]"), "ranks[0].matmul[0]: expected a point"},
      {file("[[1, 2, 3]]"), "ranks[0].matmul[0]: expected a point"},
      {file("[[1, 2], [1, 0]]"), "ranks[0].matmul[1][1]: must be greater than 0"},
      {file("[[1, -2]]"), "ranks[0].matmul[0][1]: -2 is not finite"},
      {file("[[1, null]]"), "ranks[0].matmul[0][1]: expected a number, got null"},
      {file("1", R"(, "speed": 3)"), "ranks[0]: unknown field 'speed'"},
      {file("1", R"(, "node": 3)"), "ranks[0].node: expected a text"},
      {file("1", R"(, "free_bytes": -3)"), "ranks[0].free_bytes: -3 is not a number of bytes"},
      {file("1", R"(, "free_bytes": 1.5)"), "ranks[0].free_bytes: expected a whole number"},
      {file("1", R"(, "free_bytes": 9223372036854775808)"), "is not a number of bytes"},
      {file("1", R"(, "error": -0.5)"), "ranks[0].error: -0.5"},
      {file("1e-300"), "ranks[0].matmul: 1e-300 is less than"},
      {file("1e300"), "ranks[0].matmul: 1e+300 is more than"},
      {file("[[1, 1e300]]"), "ranks[0].matmul[0][1]: 1e+300 is more than"},
      {file("[[1e-320, 1]]"), "is less than"},
      {with_link(R"({"alpha_seconds": 1e300, "beta_seconds_per_byte": 1})"),
       "inside.alpha_seconds: 1e+300 is more than"},
      {with_link(R"({"alpha_seconds": 0, "beta_seconds_per_byte": 1e300})"),
       "inside.beta_seconds_per_byte: 1e+300 is more than"},
      {std::string(100'000, '['), "brackets nest deeper than 16"},
      {R"({"ranks": )" + std::string(100'000, '[') + std::string(100'000, ']') + "}",
       "brackets nest deeper than 16"},
      {"{\"ranks\": \"\xff\xfe\"}", "not JSON"},
      {file("\"\xc3\xa4" + std::string(60, 'x') + "\""), "expected a rate"},
  };
  for (const auto& [text, message] : cases) {
    INFO(text);
    CHECK_THROWS_WITH(parse_speeds(text, "my.json"), contains("my.json: "));
    CHECK_THROWS_WITH(parse_speeds(text, "my.json"), contains(message));
    try {
      (void)parse_speeds(text, "my.json");
    } catch (const Error& error) {
      CHECK(is_utf8(error.what()));
      CHECK(std::string_view(error.what()).size() < 500);
    }
  }
  try {
    (void)parse_speeds(R"({"ranks": [], "inside": 3})", "my.json");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::config);
  }
}

}  // namespace
}  // namespace t3d::test
