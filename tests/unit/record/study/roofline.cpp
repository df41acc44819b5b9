// Rooflines: roofs and points as numbers, their file, and what the picture shows of them.
#include "record/study/roofline.hpp"

#include <algorithm>
#include <cmath>
#include <regex>

#include "core/error.hpp"
#include "record/study/roofline_plot.hpp"
#include "support/catch.hpp"

namespace t3d {
namespace {

/// 100 GFLOP/s and 20 GB/s: the roofs meet at 5 flops per byte.
Roofline example() {
  Roofline roofline;
  roofline.name = "ranks-2";
  roofline.processor = "A & B 7";
  roofline.device = "cpu";
  roofline.number_format = "fp32";
  roofline.ranks = 2;
  roofline.matmul_rate = 100e9;
  roofline.stream_rate = 20e9;
  roofline.points = {{"matmul", {64, 128, 32, 0, 1}, 3, 5e8, 2e7, 1e-2, 0.01},
                     {"matmul", {64, 32, 128, 0, 0}, 3, 4e8, 2e7, 1e-2, 0.01},
                     {"matmul", {128, 32, 64, 1, 0}, 9, 5e8, 1e7, 1e-2, 0.01},
                     {"attention_forward", {2, 32, 4, 4, 16}, 1, 1e7, 1e6, 1e-3, 0.02},
                     {"residual", {1 << 20}, 5, 8.7e4, 1 << 20, 1e-4, 0.01},
                     {"residual", {1 << 22}, 5, 3.5e5, 1 << 22, 3e-4, 0.01}};
  return roofline;
}

std::string fault_of(const std::string& text) {
  try {
    (void)parse_roofline(text, "operators.json");
  } catch (const Error& error) {
    return fmt::format("{} {}", static_cast<int>(error.code()), error.what());
  }
  return "";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("roofs: the slower of memory and products") {
  const Roofline roofline = example();
  CHECK(roofline.ridge() == Approx(5));
  CHECK(roofline.allowed(0.25) == Approx(5e9));
  CHECK(roofline.allowed(5) == Approx(100e9));
  CHECK(roofline.allowed(40) == Approx(100e9));
  CHECK(roofline.points[0].intensity() == Approx(25));
  CHECK(roofline.points[0].rate() == Approx(50e9));
  CHECK(Roofline().ridge() == Approx(0));
}

TEST_CASE("what operators are called") {
  const std::vector<RooflinePoint> points = example().points;
  CHECK(use_of(points[0]) == "forward");
  CHECK(use_of(points[1]) == "input gradient");
  CHECK(use_of(points[2]) == "weight gradient");
  CHECK(use_of(points[3]) == "attention forward");
  CHECK(use_of(points[4]) == "residual");
  CHECK(shape_text(points[0]) == "64 x 128 x 32");
  CHECK(shape_text(points[3]) == "2 x 32, 4 heads of 16");
  CHECK(shape_text(points[4]) == "1.00 MiB");
}

TEST_CASE("the file of a roofline gives the same numbers back, or is refused") {
  Roofline roofline = example();
  roofline.vendor_peak = 3e11;
  roofline.notes = {"a note"};
  const std::string text = roofline_text(roofline);
  const Roofline back = parse_roofline(text, "operators.json");
  CHECK(roofline_text(back) == text);
  CHECK(back.points[0].shape == roofline.points[0].shape);
  CHECK(fault_of("{}").starts_with("74 operators.json is no measurement of operators"));
  CHECK(fault_of(text.substr(0, 300)).starts_with("74 "));
  CHECK(fault_of(replaced(text, "\"seconds\": 0.01", "\"seconds\": 0")).starts_with("74 "));
  CHECK(fault_of(replaced(text, "\"bytes\": 20000000.0", "\"bytes\": null")).starts_with("74 "));
  // Numbers whose quotients have no logarithm would be drawn for ever.
  CHECK(fault_of(replaced(text, "\"flops\": 500000000.0", "\"flops\": 1e300")).starts_with("74 "));
  CHECK(fault_of(replaced(text, "_bytes_per_second\": 20000000000.0", "_bytes_per_second\": 1e308"))
            .starts_with("74 "));
}

TEST_CASE("shown are all products, and of each other kind the shape with most time") {
  const std::vector<RooflinePoint> shown = shown_points(example());
  REQUIRE(shown.size() == 5);
  CHECK(shown[0].times == Approx(9));  // most of a step
  CHECK(shown[4].shape == std::vector<double>{1 << 22});
}

TEST_CASE("the picture has its points where their numbers are") {
  Roofline roofline = example();
  // From half the least to twice the largest intensity: 0.0417 to 100; the point of 25 flops per
  // byte lies at log(25 / 0.0417) / log(100 / 0.0417) of 706 pixels behind the 70th.
  const double least = roofline.points[5].intensity() / 2;
  const double x = 70 + 706 * std::log(25 / least) / std::log(100 / least);
  const std::string picture = roofline_plot(roofline);
  CHECK(picture.find(fmt::format("<rect x=\"{:.1f}\"", x - 4.5)) != std::string::npos);
  for (const char* text :
       {"width=\"800\"", "Roofline of A &amp; B 7", "measured matmul rate, 100 GFLOP/s",
        "measured streaming, 20 GB/s", "arithmetic intensity, FLOP per byte", "attained, GFLOP/s",
        "64 x 128 x 32", "forward 64 x 128 x 32: 25 FLOP per byte, 50 GFLOP/s, 50 % of the roof",
        "1 more shapes are in scaling.json"})
    CHECK_THAT(picture, Catch::Contains(text));
  CHECK_THAT(picture, !Catch::Contains("vendor peak") && !Catch::Contains("nan"));
  CHECK_THAT(picture, !Catch::Contains("Hollow"));
  roofline.points[0].error = 0.2;
  roofline.vendor_peak = 2e12;
  CHECK_THAT(roofline_plot(roofline), Catch::Contains("vendor peak, 2 TFLOP/s") &&
                                          Catch::Contains("Hollow: not known to 5 %"));
}

TEST_CASE("names and numbers in the picture lie on no others, and on no mark") {
  // All in one place, and where the names of roofs used to stand.
  Roofline crowd = example();
  crowd.vendor_peak = 1.05 * crowd.matmul_rate;
  crowd.points.clear();
  for (int n = 0; n < 30; ++n) {
    const double near = 1 + 0.004 * n;
    crowd.points.push_back({"matmul", {64.0 + n, 128, 32, 0, 1}, 3, 5e8 * near, 2e8, 4e-3, 0.01});
  }
  crowd.points.push_back({"matmul", {9, 9, 9, 0, 1}, 3, 5e8, 2e7, 5e-3, 0.01});
  crowd.points.push_back({"norm", {9, 9}, 3, 4.7e8, 1.1e8, 5e-3, 0.01});
  const std::string picture = roofline_plot(crowd);
  const std::string in_frame = picture.substr(0, picture.find("operators of the plan"));
  struct Box {
    double left, top, right, bottom;
  };
  std::vector<Box> texts, marks;
  const auto boxes = [&](const std::string& pattern, const auto& use) {
    const std::regex shape(pattern);
    for (std::sregex_iterator one(in_frame.begin(), in_frame.end(), shape), end; one != end; ++one)
      use(*one);
  };
  boxes(R"re(<text x="([\d.]+)" y="([\d.]+)" font-size="(\d+)"([^>]*)>([^<]*)<)re",
        [&](const std::smatch& m) {
          const double width = 6.2 * static_cast<double>(m[5].length()), y = std::stod(m[2]);
          const double left =
              std::stod(m[1]) - (m[4].str().find("end") != std::string::npos      ? width
                                 : m[4].str().find("middle") != std::string::npos ? width / 2
                                                                                  : 0);
          if (y > 62 && y < 450) texts.push_back({left, y - 9, left + width, y});
        });
  boxes(R"re(<rect x="([\d.]+)" y="([\d.]+)" width="9.0" height="9.0")re",
        [&](const std::smatch& m) {
          const double left = std::stod(m[1]), top = std::stod(m[2]);
          marks.push_back({left, top, left + 9, top + 9});
        });
  REQUIRE(marks.size() >= 30);
  REQUIRE(texts.size() > 32);
  constexpr double kSlack = 0.2;  // coordinates have one decimal
  const auto overlap = [](const Box& a, const Box& b) {
    return a.left + kSlack < b.right && b.left + kSlack < a.right && a.top + kSlack < b.bottom &&
           b.top + kSlack < a.bottom;
  };
  index_t covered = 0;
  for (std::size_t at = 0; at < texts.size(); ++at) {
    covered += std::count_if(texts.begin() + static_cast<std::ptrdiff_t>(at) + 1, texts.end(),
                             [&](const Box& other) { return overlap(texts[at], other); });
    covered += std::count_if(marks.begin(), marks.end(),
                             [&](const Box& mark) { return overlap(texts[at], mark); });
  }
  CHECK(covered == 0);
}

TEST_CASE("a roofline of nothing says so") {
  Roofline none = example();
  none.points.clear();
  CHECK_THAT(roofline_plot(none), Catch::Contains("no operator of this plan was measured"));
  none = example();
  none.matmul_rate = 0;
  const std::string picture = roofline_plot(none);
  CHECK_THAT(picture, Catch::Contains("no operator") && !Catch::Contains("inf"));
}

}  // namespace t3d
