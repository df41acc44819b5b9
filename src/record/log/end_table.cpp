#include "record/log/end_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "core/counted.hpp"
#include "core/utf8.hpp"
#include "record/log/step_record.hpp"

namespace t3d {
namespace {

constexpr std::size_t kMostRows = 16, kExtremeRows = 4;
constexpr double kSameSpeed = 0.1;  // off the median by less: nothing to say
constexpr double kWholeCore = 0.8;  // of its own time on a core: it has one
constexpr std::size_t kNodeName = 24;

std::string phase_line(const PhaseRow& row, double total_seconds, std::size_t width) {
  const double share = total_seconds > 0 ? row.average_seconds / total_seconds : 0;
  return fmt::format("{:<{}}{:>12.3f}{:>12.3f}{:>12.3f}{:>8.1f}%\n", row.name, width,
                     row.min_seconds, row.average_seconds, row.max_seconds, 100 * share);
}

/// The parts of a rank's time, and the work that they belong to.
constexpr std::array<std::pair<double RankTimes::*, double RankLoad::*>, 3> kParts{
    {{&RankTimes::matmul, &RankLoad::matmul},
     {&RankTimes::attention, &RankLoad::attention},
     {&RankTimes::other, &RankLoad::other}}};

/// Own time against that of the median rank with the same work, at one point; 0 without work.
std::vector<double> slowness(const RankPoint& point) {
  std::vector<double> usual_seconds(point.ranks.size(), 0);
  for (const auto& [time, work] : kParts) {
    std::vector<double> each;  // seconds per work
    for (std::size_t rank = 0; rank < point.work.size(); ++rank)
      each.push_back(point.work[rank].*work > 0 ? point.ranks[rank].*time / point.work[rank].*work
                                                : 0);
    const double usual = lower_median(std::move(each));
    for (std::size_t rank = 0; rank < point.work.size(); ++rank)
      usual_seconds[rank] += usual * point.work[rank].*work;
  }
  std::vector<double> ratios;
  for (std::size_t rank = 0; rank < point.ranks.size(); ++rank)
    ratios.push_back(usual_seconds[rank] > 0 ? point.ranks[rank].own / usual_seconds[rank] : 0);
  return ratios;
}

/// By rank; medians over the points.
std::vector<double> median_slowness(const RankHistory& history,
                                    const std::vector<double>& own_seconds) {
  std::vector<std::vector<double>> points;
  for (const RankPoint& point : history.by_rank())
    if (!point.work.empty()) points.push_back(slowness(point));
  const double usual_seconds = lower_median(own_seconds);
  std::vector<double> ratios;
  for (std::size_t rank = 0; rank < own_seconds.size(); ++rank) {
    std::vector<double> own;
    for (const std::vector<double>& point : points) own.push_back(point[rank]);
    ratios.push_back(points.empty() ? own_seconds[rank] / usual_seconds
                                    : lower_median(std::move(own)));
  }
  return ratios;
}

double median_of(const RankHistory& history, std::size_t rank, double RankTimes::*time) {
  std::vector<double> seconds;
  for (const RankPoint& point : history.by_rank()) seconds.push_back(point.ranks[rank].*time);
  return lower_median(std::move(seconds));
}

std::string times(double factor) {
  return fmt::format(fmt::runtime(factor < 9.95 ? "{:.1f}x" : "{:.0f}x"), factor);
}

/// `ratio`: as median_slowness().
std::string verdict(const RankRow& row, double ratio) {
  if (row.own_seconds <= 0 || ratio <= 0) return "no work";
  if (ratio < 1 - kSameSpeed) return fmt::format("faster ({})", times(1 / ratio));
  if (ratio <= 1 + kSameSpeed) return "";
  std::string text = fmt::format("slower ({})", times(ratio));
  if (row.on_core && *row.on_core < kWholeCore)
    text += fmt::format(", on a core {:.0f} % of its time", 100 * *row.on_core);
  return text;
}

/// The ranks that are shown.
std::vector<std::size_t> shown(const std::vector<double>& own_seconds) {
  std::vector<std::size_t> ranks(own_seconds.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  if (ranks.size() <= kMostRows) return ranks;
  std::stable_sort(ranks.begin(), ranks.end(),
                   [&](std::size_t a, std::size_t b) { return own_seconds[a] > own_seconds[b]; });
  ranks.erase(ranks.begin() + kExtremeRows, ranks.end() - kExtremeRows);
  return ranks;
}

std::string rank_lines(const RankTable& table) {
  if (table.rows.empty()) return "";
  std::size_t width = 4;
  for (const RankRow& row : table.rows)
    width = std::max(width, printable(row.node, kNodeName).size());
  std::string out = fmt::format("\n{:>6}  {:<{}}{:>12}{:>10}{:>12}{:>12}{:>12}\n", "rank", "node",
                                width, "own ms", "on a core", "matmul", "attention", "other");
  for (std::size_t at = 0; at < table.rows.size(); ++at) {
    const RankRow& row = table.rows[at];
    if (table.left_out > 0 && at == table.rows.size() / 2)
      out += fmt::format("{:>6}  {} more\n", "...", table.left_out);
    out += fmt::format("{:>6}  {:<{}}{:>12.2f}{:>10}{:>12.2f}{:>12.2f}{:>12.2f}{}{}\n", row.rank,
                       printable(row.node, kNodeName), width, 1e3 * row.own_seconds,
                       row.on_core ? fmt::format("{:.0f} %", 100 * *row.on_core) : "-",
                       1e3 * row.matmul_seconds, 1e3 * row.attention_seconds,
                       1e3 * row.other_seconds, row.verdict.empty() ? "" : "  ", row.verdict);
  }
  return out;
}

}  // namespace

RankTable rank_table(const RankHistory& history, const std::vector<std::string>& nodes) {
  std::vector<double> own_seconds;
  for (std::size_t rank = 0; rank < history.ranks(); ++rank)
    own_seconds.push_back(median_of(history, rank, &RankTimes::own));
  const std::vector<double> ratios = median_slowness(history, own_seconds);
  RankTable table;
  for (const std::size_t rank : shown(own_seconds)) {
    RankRow row;
    row.rank = static_cast<int>(rank);
    row.node = rank < nodes.size() ? nodes[rank] : "-";
    row.own_seconds = own_seconds[rank];
    if (const double cpu = median_of(history, rank, &RankTimes::cpu); cpu > 0)
      row.on_core = std::min(cpu / row.own_seconds, 1.0);
    row.matmul_seconds = median_of(history, rank, &RankTimes::matmul);
    row.attention_seconds = median_of(history, rank, &RankTimes::attention);
    row.other_seconds = median_of(history, rank, &RankTimes::other);
    row.verdict = verdict(row, ratios[rank]);
    table.rows.push_back(std::move(row));
  }
  table.left_out = static_cast<index_t>(history.ranks() - table.rows.size());
  return table;
}

std::string end_table_text(const EndTable& table) {
  std::string out =
      fmt::format("{}: {} in {}, {} tok/s\n", table.reason, counted(table.steps, "step"),
                  clock_time(table.seconds), short_count(table.tokens_per_second));
  for (const std::string& remark : table.remarks) out += remark + "\n";
  if (!table.phases.empty()) {
    std::size_t width = 16;
    for (const PhaseRow& row : table.phases) width = std::max(width, row.name.size());
    out += fmt::format("\n{:<{}}{:>12}{:>12}{:>12}{:>9}\n", "seconds", width, "min", "avg", "max",
                       "share");
    double named = 0;
    for (const PhaseRow& row : table.phases) {
      out += phase_line(row, table.seconds, width);
      named += row.average_seconds;
    }
    const double other = std::max(table.seconds - named, 0.0);
    out += phase_line({"other", other, other, other}, table.seconds, width);
  }
  out += rank_lines(table.ranks);
  if (!table.axes.empty()) {
    out += fmt::format("\n{:<16}{:>20}{:>20}\n", "bytes sent, axis", "counted", "predicted");
    for (const AxisRow& row : table.axes) {
      const bool differ = row.predicted_bytes && row.predicted_bytes != row.counted_bytes;
      out += fmt::format("{:<16}{:>20}{:>20}{}\n", row.axis, row.counted_bytes,
                         row.predicted_bytes ? std::to_string(*row.predicted_bytes) : "-",
                         differ ? "  differ" : "");
    }
  }
  return out;
}

}  // namespace t3d
