// The ranks of the end table: medians, who is off, and why.
#include "record/log/end_table.hpp"

#include <algorithm>
#include <cmath>

#include "support/catch.hpp"

namespace t3d {
namespace {

RankTimes times_of(double own, double on_core = 1) {
  return {own, on_core * own, 0.5 * own, 0.3 * own, 0.2 * own};
}

/// Five equal steps, and one in which everything took ten times as long.
RankHistory history_of(const std::vector<RankTimes>& times) {
  RankHistory history;
  for (index_t step = 1; step <= 5; ++step) history.add(step, 1, times);
  std::vector<RankTimes> slow = times;
  for (RankTimes& rank : slow) rank.own *= 10;
  history.add(6, 10, slow);
  return history;
}

std::string text_of(const RankTable& ranks) {
  EndTable table;
  table.reason = "done";
  table.ranks = ranks;
  return end_table_text(table);
}

}  // namespace

TEST_CASE("of one step no rate is known") {
  EndTable table;
  table.reason = "done";
  table.steps = 1;
  table.seconds = 3;
  table.tokens_per_second = NAN;
  CHECK(end_table_text(table).starts_with("done: 1 step in 00:03, - tok/s\n"));
}

TEST_CASE("each rank's row says how it differs from the median rank") {
  RankTimes gpu = times_of(0.1);
  gpu.cpu = 0;
  const RankTable table = rank_table(history_of({times_of(0.2),
                                                 times_of(0.218),
                                                 times_of(0.42, 0.48),
                                                 times_of(2.4),
                                                 gpu,
                                                 times_of(0.182),
                                                 {}}),
                                     {"n0", "n0", "n1", "n1", "gpu<1>"});
  REQUIRE(table.rows.size() == 7);
  CHECK(table.left_out == 0);
  const RankRow& slow = table.rows[2];
  CHECK(slow.rank == 2);
  CHECK(slow.node == "n1");
  CHECK(slow.own_seconds == Approx(0.42));  // the one slow step does not count
  CHECK(slow.on_core.value() == Approx(0.48));
  CHECK(slow.matmul_seconds == Approx(0.21));
  CHECK(slow.attention_seconds == Approx(0.126));
  CHECK(slow.other_seconds == Approx(0.084));
  const std::vector<std::string> verdicts{
      "", "",       "slower (2.1x), on a core 48 % of its time", "slower (12x)", "faster (2.0x)",
      "", "no work"};
  for (std::size_t rank = 0; rank < 7; ++rank) {
    INFO("rank " << rank);
    CHECK(table.rows[rank].verdict == verdicts[rank]);
  }
  CHECK_FALSE(table.rows[4].on_core.has_value());
  CHECK(table.rows[5].node == "-");

  const std::string text = text_of(table);
  CHECK_THAT(
      text,
      test::contains("\n  rank  node        own ms on a core      matmul   attention       other\n"
                     "     0  n0          200.00     100 %      100.00       60.00       40.00\n"));
  CHECK_THAT(text, test::contains("     2  n1          420.00      48 %      210.00      126.00   "
                                  "    84.00  slower (2.1x), on a core 48 % of its time\n"));
  CHECK_THAT(text, test::contains("     4  gpu<1>      100.00         -       50.00"));
}

TEST_CASE("of two ranks the slower one is named") {
  const RankTable table = rank_table(history_of({times_of(0.3), times_of(0.1)}), {});
  CHECK(table.rows[0].verdict == "slower (3.0x)");
  CHECK(table.rows[1].verdict.empty());
}

TEST_CASE("verdicts are about speed: work that follows speed hides no slow rank") {
  const auto work = [](double part) { return RankLoad{part, part, part}; };
  RankHistory balanced, even;
  for (index_t step = 1; step <= 5; ++step) {
    // Even work first, and rank 1 takes 2.1 times as long; then it gets as much less.
    const bool moved = step > 2;
    const double own = moved ? 0.3 : 0.63;
    balanced.add(step, 0.3, {times_of(0.3), times_of(own), times_of(0.3), {}},
                 {work(1), work(moved ? 1 / 2.1 : 1), work(1), work(0)});
    // Times follow the work.
    even.add(step, 0.3, {times_of(0.3), times_of(0.6), times_of(0.1)}, {work(3), work(6), work(1)});
  }
  const RankTable table = rank_table(balanced, {});
  CHECK(table.rows[0].verdict.empty());
  CHECK(table.rows[1].verdict == "slower (2.1x)");
  CHECK(table.rows[2].verdict.empty());
  CHECK(table.rows[3].verdict == "no work");
  for (const RankRow& row : rank_table(even, {}).rows) CHECK(row.verdict.empty());

  // Of a rank with little to multiply, what all ranks do alike is most of the time.
  RankHistory fixed;
  fixed.add(1, 0.3, {{0.3, 0.3, 0.2, 0, 0.1}, {0.12, 0.12, 0.02, 0, 0.1}}, {{10, 0, 1}, {1, 0, 1}});
  for (const RankRow& row : rank_table(fixed, {}).rows) CHECK(row.verdict.empty());
}

TEST_CASE("of many ranks the slowest and the fastest have rows") {
  std::vector<RankTimes> times;
  for (int rank = 0; rank < 100; ++rank) times.push_back(times_of(0.1 + 1e-4 * (rank * 37 % 100)));
  const RankTable table = rank_table(history_of(times), {});
  REQUIRE(table.rows.size() == 8);
  CHECK(table.left_out == 92);
  CHECK(table.rows[0].own_seconds == Approx(0.1099));
  CHECK(table.rows[3].own_seconds == Approx(0.1096));
  CHECK(table.rows[4].own_seconds == Approx(0.1003));
  CHECK(table.rows[7].rank == 0);
  const std::string text = text_of(table);
  const std::size_t gap = text.find("\n   ...  92 more\n");
  REQUIRE(gap != std::string::npos);
  CHECK(std::count(text.begin() + static_cast<std::ptrdiff_t>(gap), text.end(), '\n') == 6);
}

TEST_CASE("without times there is no table of ranks") {
  CHECK(rank_table(RankHistory(), {"n0"}).rows.empty());
  CHECK_THAT(text_of({}), !test::contains("rank"));
}

}  // namespace t3d
