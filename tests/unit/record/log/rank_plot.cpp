// The plot of a run by rank: well-formed XML, and numbers where they belong.
#include "record/log/rank_plot.hpp"

#include <fmt/format.h>

#include <regex>

#include "support/catch.hpp"

namespace t3d {
namespace {

RankTimes times_of(double own) { return {own, own, 0.5 * own, 0.3 * own, 0.2 * own}; }

/// Rank r needs 100 + 10 r ms, a step 400 ms, steps 1 to 101.
RankHistory even_run(std::size_t ranks) {
  RankHistory history;
  std::vector<RankTimes> times;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    times.push_back(times_of(0.1 + 0.01 * static_cast<double>(rank)));
  for (index_t step = 1; step <= 101; ++step) history.add(step, 0.4, times);
  return history;
}

/// Every element is closed, in order, and nothing is left unescaped. Empty where so, else the
/// fault.
std::string xml_fault(const std::string& file) {
  static const std::regex tag(R"rx(<(/?)([A-Za-z]+)((?: [A-Za-z0-9:-]+="[^"<]*")*) *(/?)>)rx");
  static const std::regex lone("&(?!amp;|lt;|gt;|quot;)");
  const std::string head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  if (!file.starts_with(head)) return "no head";
  const std::string body = file.substr(head.size());
  if (std::regex_search(body, lone)) return "unescaped &";
  std::vector<std::string> open;
  std::size_t end = 0;
  for (std::sregex_iterator at(body.begin(), body.end(), tag), last; at != last; ++at) {
    const auto begin = static_cast<std::size_t>(at->position());
    const std::string between = body.substr(end, begin - end);
    if (between.find_first_of("<>") != std::string::npos) return "text: " + between;
    end = begin + static_cast<std::size_t>(at->length());
    const std::string name = (*at)[2];
    if ((*at)[1].length() > 0) {
      if (open.empty() || open.back() != name) return "closed without being open: " + name;
      open.pop_back();
      if (open.empty()) break;
    } else if ((*at)[4].length() == 0) {
      open.push_back(name);
    }
  }
  if (!open.empty()) return "not closed: " + open.back();
  return body.substr(end) == "\n" ? "" : "after the end: " + body.substr(end);
}

std::vector<std::string> found(const std::string& file, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> all;
  for (std::sregex_iterator at(file.begin(), file.end(), regex), last; at != last; ++at)
    all.push_back((*at)[1]);
  return all;
}

std::size_t count_of(const std::string& file, const std::string& pattern) {
  return found(file, "(" + pattern + ")").size();
}

/// The attribute of the shape with this tip.
std::string attribute(const std::string& file, const std::string& name, const std::string& tip) {
  const auto all =
      found(file, "<[^>]* " + name + R"x(="([^"]*)"[^>]*><title>)x" + tip + "</title>");
  return all.size() == 1 ? all[0] : fmt::format("{} of them", all.size());
}

std::string curve(const std::string& file, const std::string& tip) {
  return attribute(file, "points", tip);
}

}  // namespace

TEST_CASE("every plot is well-formed") {
  for (const std::size_t ranks : {0U, 1U, 2U, 9U, 16U, 17U, 64U, 65U, 300U}) {
    INFO(ranks << " ranks");
    RankHistory history = even_run(ranks);
    history.mark(50, "mesh 1 -> 2 & \"<a>\"\n");
    const std::string file = rank_plot(history, "a < b & c > \"d\" \x01 \xff é");
    CHECK(xml_fault(file).empty());
    CHECK_THAT(file, test::contains(">a &lt; b &amp; c &gt; &quot;d&quot; \\x01 \\xFF é</text>"));
    CHECK(file.find("nan") == std::string::npos);
    CHECK(file.find("inf") == std::string::npos);
    CHECK(file.find("script") == std::string::npos);
    CHECK(file.find("-0<") == std::string::npos);
  }
  // What the check must see.
  CHECK_FALSE(xml_fault("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<a><b></a></b>\n").empty());
  CHECK_FALSE(xml_fault("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<a>x & y</a>\n").empty());
  CHECK_FALSE(xml_fault("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<a b=\"<\"/>\n").empty());
  CHECK_FALSE(xml_fault("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<a>\n").empty());
}

TEST_CASE("a point is where its numbers say") {
  RankHistory history = even_run(4);
  history.mark(26, "slab 1: 8 -> 4");
  const std::string file = rank_plot(history, "run");
  CHECK(count_of(file, "<polyline") == 5);  // four ranks and the step
  // Upward: 400 ms and a little need the tick 500, so 100 ms are a fifth. Across: steps 1 to 101.
  const SvgFrame& frame = kStepsFrame;
  const auto point = [&](double step, double milliseconds) {
    return pixels(frame.left + frame.width * (step - 1) / 100) + "," +
           pixels(frame.bottom() - frame.height * milliseconds / 500);
  };
  CHECK_THAT(file, test::contains(">500</text>"));
  const std::string rank2 = curve(file, "rank 2");
  CHECK(rank2.starts_with(point(1, 120) + " " + point(2, 120)));
  CHECK_THAT(rank2, test::contains(" " + point(51, 120) + " "));
  CHECK(rank2.ends_with(" " + point(101, 120)));
  CHECK(curve(file, "whole step").ends_with(" " + point(101, 400)));
  // The change of plan: a quarter of the way.
  const std::string x = pixels(frame.left + frame.width / 4);
  CHECK(count_of(file, "<line x1=\"" + x + "\" y1=\"[0-9.]+\" x2=\"" + x + "\" y2=\"" +
                           pixels(frame.bottom()) + "\"[^>]*><title>step 26: slab 1: 8 -&gt; 4<") ==
        1);
  CHECK_THAT(file, test::contains(">slab 1: 8 -&gt; 4</text>"));
}

TEST_CASE("a bar is as high as its times") {
  const std::string file = rank_plot(even_run(2), "run");
  // The tick above 400 ms is 400 ms itself.
  const auto height_of = [&](const std::string& tip) { return attribute(file, "height", tip); };
  const auto length = [](double milliseconds) {
    return pixels(kBarsFrame.height * milliseconds / 400);
  };
  CHECK(height_of("rank 0: matmul 50 ms") == length(50));
  CHECK(height_of("rank 1: attention 33 ms") == length(33));
  CHECK(height_of("rank 1: other 22 ms") == length(22));
  CHECK(height_of("rank 0: waiting 300 ms") == length(300));
  CHECK(height_of("rank 1: waiting 290 ms") == length(290));
  // One stands on the other.
  CHECK(attribute(file, "y", "rank 0: waiting 300 ms") == pixels(kBarsFrame.top));
  CHECK(attribute(file, "y", "rank 0: matmul 50 ms") == pixels(kBarsFrame.bottom() - 14));
  CHECK(attribute(file, "y", "rank 0: attention 30 ms") == pixels(kBarsFrame.bottom() - 22.4));
}

TEST_CASE("many ranks are a band, and some bars") {
  const std::string at64 = rank_plot(even_run(64), "run");
  CHECK(count_of(at64, "<polyline") == 2);
  CHECK(count_of(at64, "<polygon") == 1);
  CHECK(count_of(at64, "rank [0-9]+: matmul ") == 64);
  CHECK(curve(at64, "median rank").size() > 1000);
  const std::string at300 = rank_plot(even_run(300), "run");
  CHECK(count_of(at300, "rank [0-9]+: matmul ") == 64);
  CHECK_THAT(at300, test::contains("rank 0: matmul") && test::contains("rank 299: matmul") &&
                        test::contains(">rank: 64 of 300, from the fastest to the slowest<"));
  CHECK(count_of(rank_plot(even_run(16), "run"), "<polyline") == 17);
}

TEST_CASE("an emulated run says so in its title") {
  RankHistory history = even_run(2);
  CHECK_THAT(rank_plot(history, "run"), !test::contains("emulated"));
  history.set_emulated();
  CHECK_THAT(rank_plot(history, "run"), test::contains(">run (emulated)</text>"));
}

TEST_CASE("a few long steps do not press the others to the ground") {
  RankHistory history;
  history.add(1, 9, {times_of(8)});
  for (index_t step = 2; step <= 101; ++step) history.add(step, 0.4, {times_of(0.3)});
  const std::string file = rank_plot(history, "run");
  CHECK_THAT(file, test::contains(">500</text>") &&
                       test::contains(">one point is longer than shown, up to 9000 ms</text>"));
}

TEST_CASE("slow steps are shown in seconds") {
  RankHistory history;
  for (index_t step = 1; step <= 3; ++step) history.add(step, 12, {times_of(10)});
  const std::string file = rank_plot(history, "run");
  CHECK_THAT(file, test::contains(">own time, s per step</text>") && test::contains(">14</text>"));
}

TEST_CASE("ticks are round numbers") {
  CHECK(round_ticks(0, 100, 5) == std::vector<double>{0, 20, 40, 60, 80, 100});
  CHECK(round_ticks(1, 7, 8, 1) == std::vector<double>{1, 2, 3, 4, 5, 6, 7});
  CHECK(round_ticks(990, 3010, 4) == std::vector<double>{1000, 1500, 2000, 2500, 3000});
  CHECK(pixels(-0.04) == "0.0");
}

}  // namespace t3d
