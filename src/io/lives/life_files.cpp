#include "io/lives/life_files.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "io/checkpoint/checkpoint_glance.hpp"
#include "io/log_tail.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

std::string open_path(const std::string& dir) { return dir + "/life.json"; }
std::string ended_path(const std::string& dir) { return dir + "/lives.jsonl"; }

/// A line of lives.jsonl, as it stands there.
struct Line {
  std::string text;
  std::optional<LifeRecord> life;
};

/// Without the half of a line at the end.
std::vector<Line> read_lines(const std::string& dir) {
  if (!path_exists(ended_path(dir))) return {};
  const std::string text = read_text_file(ended_path(dir));
  std::vector<Line> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    Line line{text.substr(at, end - at), {}};
    line.life = parse_life(line.text);
    if (end < text.size() || line.life) lines.push_back(std::move(line));
    at = end + 1;
  }
  return lines;
}

void write_lines(const std::string& dir, const std::vector<Line>& lines) {
  std::string text;
  for (const Line& line : lines) text += line.text + "\n";
  write_text_durably(ended_path(dir), text);
}

std::optional<LifeRecord> last_of(const std::vector<Line>& lines) {
  for (auto line = lines.rbegin(); line != lines.rend(); ++line)
    if (line->life) return line->life;
  return std::nullopt;
}

/// Adds the life unless it stands there: it was killed between the line and the removal of
/// life.json.
void add(std::vector<Line>& lines, const LifeRecord& life) {
  const auto last = last_of(lines);
  if (last && last->life >= life.life) return;
  lines.push_back({format_life(life), life});
}

/// What `look` finds; nothing where it fails: a life's record is kept also where a part of it
/// cannot be found out.
template <class Look>
auto found(const Look& look) -> decltype(look()) {
  try {
    return look();
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

/// Of a version that wrote no epoch: nobody knows.
bool can_be_of(const ExitRecord& exit, const LifeRecord& life) {
  if (exit.epoch.token.empty()) return true;
  return exit.epoch.job == life.job.value_or("") && exit.epoch.restart == life.restart;
}

LifeTraces traces_of(const LifeRecord& life, const std::string& dir,
                     const std::string& checkpoint_dir) {
  LifeTraces traces;
  traces.exit = found([&] { return read_exit_record(dir); });
  if (traces.exit && !can_be_of(*traces.exit, life)) traces.exit.reset();
  if (traces.exit) traces.exit_time = file_time(dir + "/exit.json");
  traces.logged_step = found([&]() -> std::optional<index_t> {
    const auto steps = last_steps(dir, 3);  // the last line may be no record
    if (steps.empty()) return std::nullopt;
    return steps.back().step;
  });
  traces.saved_step = found([&]() -> std::optional<index_t> {
    const auto saved = newest_published(checkpoint_dir, life.lineage);
    if (!saved || !life.lineage) return std::nullopt;
    return saved->step;
  });
  return traces;
}

void remove_open(const std::string& dir) {
  if (::unlink(open_path(dir).c_str()) != 0 && errno != ENOENT)
    throw_error(ExitCode::io, "cannot remove {}: {}", open_path(dir), std::strerror(errno));
}

/// Slurm's restart of the life that this process has written down last; -1 = none.
std::atomic<index_t>& recorded_restart() {
  static std::atomic<index_t> restart{-1};
  return restart;
}

}  // namespace

std::optional<LifeRecord> read_open_life(const std::string& dir) {
  constexpr index_t kLines = 10;  // the last ones may be no records
  if (!path_exists(open_path(dir))) return std::nullopt;
  const std::optional<LifeRecord> life = parse_life(read_record_file(open_path(dir)));
  if (!life) return std::nullopt;
  try {
    const std::vector<LifeRecord> ended = last_lives(dir, kLines);
    if (!ended.empty() && ended.back().life >= life->life) return std::nullopt;
  } catch (const Error&) {  // does not say now
  }
  return life;
}

void write_open_life(const std::string& dir, const LifeRecord& life) {
  write_text_durably(open_path(dir), format_life(life) + "\n");
  recorded_restart() = life.restart;
}

LifeRecord closed_as_found(const LifeRecord& life, const std::string& dir,
                           const std::string& checkpoint_dir) {
  return closed_life(life, traces_of(life, dir, checkpoint_dir));
}

std::optional<LifeRecord> close_open_life(const std::string& dir,
                                          const std::string& checkpoint_dir) {
  std::vector<Line> lines = read_lines(dir);
  if (const auto life = read_open_life(dir)) {
    add(lines, closed_as_found(*life, dir, checkpoint_dir));
    write_lines(dir, lines);
  }
  return last_of(lines);
}

void add_ended_life(const std::string& dir, const LifeRecord& life) {
  std::vector<Line> lines = read_lines(dir);
  add(lines, life);
  write_lines(dir, lines);
  remove_open(dir);
}

void add_lost_steps(const std::string& dir, index_t from, bool chosen) {
  std::vector<Line> lines = read_lines(dir);
  bool changed = false;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (!line->life) continue;
    if (line->life->lost_steps) break;
    line->life->lost_steps = lost_steps(*line->life, from, chosen);
    if (line->life->lost_steps) {
      line->text = format_life(*line->life);
      changed = true;
    }
    if (line->life->from_step) break;  // those before it know theirs
  }
  if (changed) write_lines(dir, lines);
}

void forget_open_life(const std::string& dir) noexcept {
  try {
    remove_open(dir);
  } catch (const std::exception&) {
    return;
  }
}

std::vector<LifeRecord> last_lives(const std::string& dir, index_t count) {
  std::vector<LifeRecord> lives;
  for (const std::string& line : last_lines(ended_path(dir), count))
    if (auto life = parse_life(line)) lives.push_back(std::move(*life));
  return lives;
}

FruitlessLives lives_without_progress(const std::string& dir, index_t most) noexcept {
  try {
    const std::vector<LifeRecord> lives = last_lives(dir, most);
    FruitlessLives found;
    for (auto life = lives.rbegin(); life != lives.rend() && !has_progressed(*life); ++life) {
      ++found.all;
      if (was_cut_short(*life)) ++found.cut_short;
    }
    return found;
  } catch (const std::exception&) {
    return {};
  }
}

index_t unknown_lives(const std::string& dir, const std::string& job, index_t restart) noexcept {
  constexpr index_t kMost = 1000;
  try {
    const std::optional<LifeRecord> open = found([&] { return read_open_life(dir); });
    if (open && open->job == job && open->restart >= restart) return 0;
    const auto lives = found([&] { return std::optional(last_lives(dir, kMost)); });
    // Restart of the last life of this job. Cannot be read now: what this process has written down.
    index_t known = lives ? -1 : index_t{recorded_restart()};
    for (const LifeRecord& life : lives.value_or(std::vector<LifeRecord>{}))
      if (life.job == job) known = life.restart;
    return std::max<index_t>(0, restart - known - 1);
  } catch (const std::exception&) {
    return restart;
  }
}

}  // namespace t3d
