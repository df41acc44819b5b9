// From runs to a study's numbers, and what cannot be one study.
#include "record/study/study.hpp"

#include <cmath>

#include "record/study/study_plot.hpp"
#include "record/study/study_text.hpp"
#include "support/catch.hpp"

namespace t3d {
namespace {

RunFigures run_of(index_t ranks, double seconds) {
  RunFigures run;
  run.folder = "r" + std::to_string(ranks);
  run.ranks = ranks;
  run.nodes = 1;
  run.shape = "1 x 1 x " + std::to_string(ranks);
  run.sequences = 8;
  run.tokens = 800;
  run.seconds = seconds;
  run.counted_bytes = 1000;
  run.common = {{"model.layers", "2"}, {"processor", "P"}, {"device", "cpu"}};
  run.program = {{"commit", "abc"}, {"build", "0123456789abcdef01"}, {"build_type", "Release"}};
  return run;
}

StudyFigures study_of(std::vector<StudyPoint> points, bool weak = false) {
  return study_figures("t", weak, 3, std::move(points));
}

std::vector<StudyPoint> three_points() {
  return {{"ranks-4", 4, {run_of(4, 0.5), run_of(4, 0.4), run_of(4, 0.45)}},
          {"ranks-1", 1, {run_of(1, 1.0), run_of(1, 1.2), run_of(1, 0.8)}},
          {"ranks-2", 2, {}}};
}

std::string fault_of(std::vector<StudyPoint> points, bool weak = false) {
  try {
    (void)study_of(std::move(points), weak);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("medians, spread, speed-up and efficiency") {
  const StudyFigures study = study_of(three_points());
  REQUIRE(study.points.size() == 3);
  REQUIRE(study.base == 0);
  const PointFigures &one = study.points[0], &two = study.points[1], &four = study.points[2];
  CHECK(one.seconds.middle == Approx(1.0));
  CHECK(one.seconds.relative() == Approx(0.4));
  CHECK(one.speed_up.middle == Approx(1));
  CHECK(two.missing);
  CHECK(two.marks() == "missing");
  CHECK_FALSE(std::isfinite(two.speed_up.middle));
  CHECK(four.rate.middle == Approx(800 / 0.45));
  CHECK(four.speed_up.middle == Approx(1 / 0.45));
  CHECK(four.speed_up.low == Approx(2.0));
  CHECK(four.speed_up.high == Approx(2.5));
  CHECK(four.efficiency.middle == Approx(0.25 / 0.45));
  CHECK(study.machine == "1 node, P");
}

TEST_CASE("a study that begins with two ranks counts them as two") {
  const StudyFigures study =
      study_of({{"ranks-2", 2, {run_of(2, 1)}}, {"ranks-4", 4, {run_of(4, 0.5)}}});
  CHECK(study.points[0].efficiency.middle == Approx(1));
  CHECK(study.points[1].speed_up.middle == Approx(4));
}

TEST_CASE("of several shapes the fastest is the base") {
  RunFigures slow = run_of(1, 2);
  slow.shape = "other";
  const StudyFigures study = study_of({{"a", 1, {slow}}, {"b", 1, {run_of(1, 1)}}});
  REQUIRE(study.base == 1);
  CHECK(study.points[0].speed_up.middle == Approx(0.5));
}

TEST_CASE("runs that do not belong together are named") {
  RunFigures other = run_of(4, 0.5);
  other.common["model.layers"] = "3";
  CHECK(fault_of({{"ranks-1", 1, {run_of(1, 1)}}, {"ranks-4", 4, {other}}}) ==
        "these runs do not belong together: model.layers is 2 in r1 and 3 in r4");
  other = run_of(4, 0.5);
  other.sequences = 32;
  CHECK(fault_of({{"ranks-1", 1, {run_of(1, 1)}}, {"ranks-4", 4, {other}}}) ==
        "these runs do not belong together: r1 has 8 sequences on 1 rank and r4 has 32 on 4, "
        "which is no strong scaling");
  CHECK(fault_of({{"ranks-1", 1, {run_of(1, 1)}}, {"ranks-4", 4, {other}}}, true).empty());
  CHECK(fault_of({{"ranks-1", 1, {run_of(2, 1)}}}) == "r2 has 2 ranks, and stands for 1");
}

TEST_CASE("a program that was replaced between runs is a warning, and marks the point") {
  std::vector<StudyPoint> points = three_points();
  CHECK(study_of(points).warnings.empty());
  CHECK(study_of(points).program == "commit abc, build 0123456789abcdef (Release)");
  // Built anew from the same commit.
  points[1].runs[2].program["build"] = "77";
  points[1].runs[2].folder = "ranks-1/repeat-3";
  const StudyFigures study = study_of(points);
  REQUIRE(study.warnings.size() == 1);
  CHECK(study.warnings[0] ==
        "the program was replaced between the runs: ranks-1/repeat-3 is of commit abc, build 77 "
        "(Release); most runs are of commit abc, build 0123456789abcdef (Release)");
  CHECK(study.points[0].marks() == "other program");
  CHECK(study.points[2].marks().empty());
  CHECK(study_table(study).find("warning: the program was replaced") != std::string::npos);
  CHECK(study_csv(study).find(",other program\r\n") != std::string::npos);
  CHECK(study_json(study).find("\"other_program\": true") != std::string::npos);
  CHECK(study_plot(study).find("several programs") != std::string::npos);
  CHECK(study_latex(study).find("% warning: the program") != std::string::npos);
}

TEST_CASE("repeats end when they are close together") {
  CHECK_FALSE(settled({1, 1}, 0.5));
  CHECK(settled({1, 1.01, 1.02}, 0.02));
  CHECK_FALSE(settled({1, 1.01, 1.03}, 0.02));
}

TEST_CASE("spread of what is known") {
  const RunSpread spread = spread_of({3, kUnknown, 1, 2, 10});
  CHECK(spread.low == Approx(1));
  CHECK(spread.middle == Approx(2.5));
  CHECK(spread.high == Approx(10));
  CHECK_FALSE(std::isfinite(spread_of({kUnknown}).middle));
}

TEST_CASE("a study as CSV, JSON and LaTeX") {
  StudyFigures study = study_of(three_points());
  study.points[2].emulated = study.points[2].shared_cores = true;
  study.points[2].holes = {"x/log.jsonl lacks step 3"};
  const std::string csv = study_csv(study);
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 4);
  CHECK(csv.find("strong,1,1,1 x 1 x 1,8,3,3,1,0.8,1.2,") != std::string::npos);
  CHECK(csv.find("strong,2,,,,0,3,,,") != std::string::npos);
  CHECK(csv.find("\"shared cores, emulated, steps missing\"\r\n") != std::string::npos);
  const std::string json = study_json(study);
  CHECK(json.find("\"base\": \"ranks-1\"") != std::string::npos);
  CHECK(json.find("NaN") == std::string::npos);
  const std::string latex = study_latex(study);
  CHECK(latex.find("1 & $1 \\times 1 \\times 1$ & 3 & 1000 & 800--1200 & 1.00") !=
        std::string::npos);
  CHECK(latex.find("2 & -- & 0 & -- & -- & ") != std::string::npos);
  CHECK(latex_text("a_b & 50% {x} \\ ~") ==
        "a\\_b \\& 50\\% \\{x\\} \\textbackslash{} \\textasciitilde{}");
}

TEST_CASE("a picture of any study") {
  const std::string picture = study_plot(study_of(three_points()));
  CHECK(picture.find("missing") != std::string::npos);
  CHECK(picture.find("speed-up 2.22, efficiency 55.6 %") != std::string::npos);
  CHECK(picture.find("nan") == std::string::npos);
  for (const StudyFigures& study :
       {study_of({}), study_of({{"ranks-2", 2, {}}}), study_of({{"ranks-1", 1, {run_of(1, 1)}}})}) {
    const std::string other = study_plot(study);
    CHECK(other.ends_with("</svg>\n"));
    CHECK(other.find("nan") == std::string::npos);
    CHECK(other.find("inf") == std::string::npos);
  }
}

}  // namespace t3d
