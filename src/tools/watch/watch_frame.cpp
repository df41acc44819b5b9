#include "tools/watch/watch_frame.hpp"

#include <fmt/chrono.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>

#include "core/commas.hpp"
#include "core/folded.hpp"
#include "core/utf8.hpp"
#include "record/log/step_record.hpp"

namespace t3d {
namespace {

constexpr int kNarrowest = 20, kIndent = 10, kCurveRows = 3;
constexpr std::size_t kLately = 100;  // steps of the second curve

bool begins_letter(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

/// At most so many letters, what is not ASCII replaced where the screen has nothing else.
std::string fitted(const std::string& text, const Screen& screen) {
  std::string out;
  int letters = 0;
  for (const char byte : text) {
    if (begins_letter(byte) && ++letters > screen.columns) break;
    const bool ascii = static_cast<unsigned char>(byte) < 0x80;
    if (ascii || screen.utf8)
      out += byte;
    else if (begins_letter(byte))
      out += '?';
  }
  return out;
}

std::string repeated(const std::string& letter, int times) {
  std::string text;
  for (int n = 0; n < times; ++n) text += letter;
  return text;
}

/// A bar of so many letters, filled up to `share`, with eighths of a letter.
std::string bar(double share, int columns, bool utf8) {
  share = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0;
  const auto eighths = static_cast<int>(std::lround(share * 8 * columns));
  constexpr std::array parts{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (!utf8) {
    const int filled = (eighths + 4) / 8;
    return repeated("#", filled) + repeated(".", columns - filled);
  }
  const int filled = eighths / 8, part = eighths % 8;
  return repeated("█", filled) + parts[static_cast<std::size_t>(part)] +
         repeated("·", columns - filled - (part > 0 ? 1 : 0));
}

std::string number(const char* format, double value) {
  return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : "-";
}

std::string local_time(double seconds, const char* format) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm local{};
  if (localtime_r(&time, &local) == nullptr) return "-";
  char text[64];
  return {text, std::strftime(text, sizeof text, format, &local)};
}

std::string state_line(const RunStatus& s) {
  std::string text = printable(s.dir) + "  " + name_of(s.state);
  if (s.exit && !s.alive())
    text += fmt::format(" ({}): {}", static_cast<int>(s.exit->code),
                        s.exit->reason.substr(0, s.exit->reason.find('\n')));
  else if (!s.lock.owner.empty())
    text += ": " + s.lock.owner;
  return printable(text);
}

/// ANSI: green while it runs and when it is done, red when it failed, yellow else.
std::string painted(const std::string& line, RunState state) {
  const bool good = state == RunState::running || state == RunState::done;
  const bool bad = state == RunState::failed || state == RunState::killed;
  return fmt::format("\033[1;{}m{}\033[0m", good ? 32 : bad ? 31 : 33, line);
}

std::string left_text(const RunStatus& s) {
  const auto left = s.seconds_left();
  if (!left || !s.alive() || s.last->step == s.last->steps) return "";
  std::string text = "left " + clock_time(*left);
  if (s.state == RunState::running)
    text += local_time(s.now + *left, *left > 86400 / 2 ? ", until %m-%d %H:%M" : ", until %H:%M");
  return text;
}

void add_progress(std::vector<std::string>& lines, const RunStatus& s, const FollowedStep& step,
                  const Screen& screen) {
  const double share =
      step.steps > 0 ? static_cast<double>(step.step) / static_cast<double>(step.steps) : 0;
  const std::string text =
      fmt::format("{} of {}  {:.1f} %  {}", step.step, step.steps, 100 * share, left_text(s));
  const int room = std::clamp(screen.columns - kIndent - static_cast<int>(text.size()) - 2, 0, 30);
  lines.push_back("step      " + (room >= 5 ? bar(share, room, screen.utf8) + "  " : "") + text);
  std::string loss = "loss      " + number("{:.4f}", step.loss);
  if (const auto newest = s.newest_validation())
    loss += fmt::format("  {} {:.4f} at {}", newest->name(), newest->loss, newest->step);
  loss +=
      fmt::format("  norm {}  lr {}", number("{:.2f}", step.grad_norm), number("{:.2e}", step.lr));
  lines.push_back(loss);
  std::string speed = "speed     ";
  speed += s.median_seconds ? short_time(*s.median_seconds) + " a step" : "-";
  if (s.median_rate) speed += "  " + short_count(*s.median_rate) + " tok/s";
  speed += fmt::format("  mfu {}  waiting {}", number("{:.0f} %", 100 * step.mfu),
                       number("{:.0f} %", 100 * step.comm_fraction));
  if (std::isfinite(step.imbalance)) speed += fmt::format("  imb {:.0f} %", 100 * step.imbalance);
  if (s.alive() && s.log_time)
    speed += "  " + clock_time(std::max(0.0, s.now - *s.log_time)) + " ago";
  lines.push_back(speed);
}

/// The least and the largest number.
std::pair<double, double> range_of(const std::vector<double>& values) {
  double low = FollowedStep::kNotKnown, high = low;
  for (const double value : values) {
    low = std::fmin(low, value);
    high = std::fmax(high, value);
  }
  return {low, high};
}

void add_curve(std::vector<std::string>& lines, const std::string& name,
               const std::vector<double>& values, const Screen& screen) {
  constexpr int kScale = 9;  // columns of the scale at the right
  const auto [low, high] = range_of(values);
  std::vector<std::string> rows =
      curve(values, screen.columns - kIndent - kScale, kCurveRows, screen.utf8);
  const auto drawn = static_cast<std::size_t>(screen.columns - kIndent - kScale);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::size_t width = std::min(values.size(), drawn);
    const std::string scale = row == 0                 ? fmt::format(" {:.4f}", high)
                              : row + 1 == rows.size() ? fmt::format(" {:.4f}", low)
                                                       : "";
    lines.push_back(fmt::format("{:<{}}", row == 0 ? name : "", kIndent) + rows[row] +
                    std::string(drawn - width, ' ') + scale);
  }
}

/// A hole is as long as it is, but all of them together no longer than what is there.
std::vector<double> losses_with_holes(const StepFollower& steps) {
  std::vector<double> values;
  const std::vector<StepRange>& holes = steps.missing().ranges();
  const auto most =
      std::max<index_t>(1, std::ssize(steps.losses()) / std::max<index_t>(1, std::ssize(holes)));
  auto hole = holes.begin();
  for (const auto& [step, loss] : steps.losses()) {
    for (; hole != holes.end() && hole->last < step; ++hole)
      if (!values.empty())
        values.insert(values.end(),
                      static_cast<std::size_t>(std::min(most, hole->last - hole->first + 1)),
                      FollowedStep::kNotKnown);
    values.push_back(loss);
  }
  return values;
}

void add_losses(std::vector<std::string>& lines, const StepFollower& steps, const Screen& screen) {
  if (steps.losses().size() < 2) return;
  std::vector<double> values = losses_with_holes(steps);
  lines.push_back(fmt::format(
      "loss, steps {} to {}{}", steps.losses().front().first, steps.losses().back().first,
      values.size() > 2 * kLately ? fmt::format("; below, the last {}", kLately) : ""));
  add_curve(lines, "", values, screen);
  if (values.size() <= 2 * kLately) return;
  values.erase(values.begin(), values.end() - static_cast<std::ptrdiff_t>(kLately));
  add_curve(lines, "", values, screen);
}

/// The slowest of each group: it is what the others wait for.
void add_ranks(std::vector<std::string>& lines, const FollowedRanks& ranks, int rows,
               const Screen& screen) {
  const auto count = static_cast<int>(ranks.own.size());
  if (count == 0 || rows < 2) return;
  const int group = (count + rows - 2) / (rows - 1);
  const double slowest = *std::max_element(ranks.own.begin(), ranks.own.end());
  lines.push_back(fmt::format("ranks in step {}: ms without waiting{}", ranks.step,
                              group > 1 ? fmt::format("; slowest of {} each", group) : ""));
  for (int first = 0; first < count; first += group) {
    const int end = std::min(count, first + group);
    const double own = *std::max_element(ranks.own.begin() + first, ranks.own.begin() + end);
    const std::string label =
        group > 1 ? fmt::format("{}-{}", first, end - 1) : std::to_string(first);
    const std::string text =
        fmt::format("{:>9} {:>8} ", label, std::isfinite(own) ? readable(own, 4) : "-");
    lines.push_back(
        text + bar(own / slowest, screen.columns - static_cast<int>(text.size()), screen.utf8));
  }
}

std::string life_text(const LifeRecord& life, bool open) {
  std::string text = printable(life.why.substr(0, life.why.find('\n')));
  if (life.from_step) text += fmt::format("; from step {}", *life.from_step);
  if (!open && life.step) text += fmt::format(" to {}", *life.step);
  if (!open && life.reason)
    text += "; " + printable(life.reason->substr(0, life.reason->find('\n')));
  return text;
}

/// Checkpoint, lives, events, files that could not be read.
std::vector<std::string> tail_lines(const RunStatus& s) {
  std::vector<std::string> lines;
  if (s.newest)
    lines.push_back(fmt::format("saved     step {}, {} ago", s.newest->step,
                                clock_time(std::max(0.0, s.now - s.newest->written))));
  if (s.missing.count() > 0) lines.push_back("missing   " + s.missing.text() + " of log.jsonl");
  const bool open = s.life && (s.lives.empty() || s.life->life > s.lives.back().life);
  if (!s.lives.empty())
    lines.push_back(
        fmt::format("life {:<5}{}", s.lives.back().life, life_text(s.lives.back(), false)));
  if (open) lines.push_back(fmt::format("life {:<5}{}", s.life->life, life_text(*s.life, true)));
  for (const std::string& event : s.events) lines.push_back("          " + printable(event));
  for (const std::string& fault : s.faults) lines.push_back("not read  " + printable(fault));
  return lines;
}

}  // namespace

std::vector<std::string> curve(const std::vector<double>& values, int columns, int rows,
                               bool utf8) {
  const auto count = static_cast<index_t>(values.size());
  const index_t width = std::min<index_t>(count, std::max(columns, 1));
  std::vector<double> means;
  for (index_t column = 0; column < width; ++column) {
    const index_t first = column * count / width, end = (column + 1) * count / width;
    double sum = 0, numbers = 0;
    for (index_t at = first; at < end; ++at) {
      const double value = values[static_cast<std::size_t>(at)];
      if (!std::isfinite(value)) continue;
      sum += value;
      ++numbers;
    }
    means.push_back(numbers > 0 ? sum / numbers : FollowedStep::kNotKnown);
  }
  const auto [low, high] = range_of(means);
  static const std::array<std::string, 9> blocks{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static const std::array<std::string, 4> letters{" ", ".", ":", "|"};
  const auto levels = static_cast<int>(utf8 ? blocks.size() : letters.size()) - 1;
  std::vector<std::string> lines(static_cast<std::size_t>(rows));
  for (const double mean : means) {
    const double share = high > low ? (mean - low) / (high - low) : 0;
    // The lowest value is seen, too.
    const int filled =
        std::isfinite(mean) ? 1 + static_cast<int>(std::lround(share * (levels * rows - 1))) : 0;
    for (int row = 0; row < rows; ++row) {
      const auto level =
          static_cast<std::size_t>(std::clamp(filled - levels * (rows - 1 - row), 0, levels));
      lines[static_cast<std::size_t>(row)] += utf8 ? blocks[level] : letters[level];
    }
  }
  return lines;
}

std::vector<std::string> watch_frame(const RunStatus& status, const StepFollower& steps,
                                     const Screen& asked) {
  Screen screen = asked;
  screen.columns = std::max(screen.columns, kNarrowest);
  std::vector<std::string> lines{state_line(status)};
  std::vector<std::string> tail = tail_lines(status);
  if (steps.last()) {
    add_progress(lines, status, *steps.last(), screen);
    add_losses(lines, steps, screen);
    // Where rows are few, the bars get at least a third of them.
    const auto taken = static_cast<int>(lines.size() + tail.size());
    const int rows = std::max(screen.rows - taken, screen.rows / 3);
    if (steps.ranks()) add_ranks(lines, *steps.ranks(), rows, screen);
  } else if (status.state != RunState::not_begun) {
    lines.emplace_back("step      none in log.jsonl");
  }
  lines.insert(lines.end(), tail.begin(), tail.end());
  if (std::ssize(lines) > asked.rows)
    lines.resize(static_cast<std::size_t>(std::max(asked.rows, 1)));
  screen.columns = asked.columns;
  for (std::string& line : lines) line = fitted(line, screen);
  if (screen.colour) lines.front() = painted(lines.front(), status.state);
  return lines;
}

std::string watch_line(const RunStatus& s) {
  std::string text = local_time(s.now, "%Y-%m-%d %H:%M:%S") + "  " + name_of(s.state);
  if (s.last) {
    text += fmt::format("  step {}", s.last->step);
    if (s.last->steps) text += fmt::format("/{}", *s.last->steps);
    if (s.last->loss) text += fmt::format("  loss {:.4f}", *s.last->loss);
  }
  if (s.median_seconds) text += "  " + short_time(*s.median_seconds) + " a step";
  if (s.median_rate) text += "  " + short_count(*s.median_rate) + " tok/s";
  if (s.missing.count() > 0) text += "  log.jsonl lacks " + s.missing.text();
  if (const std::string left = left_text(s); !left.empty()) text += "  " + left;
  if (s.exit && !s.alive()) text += ": " + s.exit->reason.substr(0, s.exit->reason.find('\n'));
  return folded(printable(text), 4);
}

}  // namespace t3d
