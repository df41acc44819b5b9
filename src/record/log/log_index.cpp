#include "record/log/log_index.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "core/error.hpp"
#include "io/crc32c.hpp"
#include "io/json_fields.hpp"
#include "record/log/log_lines.hpp"

namespace t3d {
namespace {

using Clock = std::chrono::steady_clock;

constexpr index_t kMarkBytes = index_t{32} << 20;  // between two marks
constexpr index_t kCrcBytes = 512;      // before a mark: a record is never the same twice
constexpr index_t kLinesAtOnce = 1000;  // between two looks at the clock
constexpr const char* kEnding = ".jsonl";

std::uint32_t crc_before(const FileReader& log, index_t end) {
  std::string text(static_cast<std::size_t>(std::min(kCrcBytes, end)), '\0');
  log.read_at(end - std::ssize(text), text.data(), std::ssize(text));
  return crc32c(text);
}

std::string index_of(const std::string& log) {
  const std::size_t stem =
      log.ends_with(kEnding) ? log.size() - std::string(kEnding).size() : log.size();
  return log.substr(0, stem) + ".index";
}

}  // namespace

LogIndex::LogIndex(std::string log) : log_(std::move(log)), path_(index_of(log_)) {
  try {
    load();
  } catch (const std::exception&) {
    marks_.clear();
  }
  const index_t size = file_size(log_);
  while (!marks_.empty() && marks_.back().end > size) marks_.pop_back();
  if (!marks_.empty()) {
    const FileReader reader(log_);
    while (!marks_.empty() && crc_before(reader, marks_.back().end) != marks_.back().crc)
      marks_.pop_back();
  }
  saved_ = marks_.size();
  if (marks_.empty()) return;
  std::vector<StepRange> ranges;
  for (const Mark& mark : marks_)
    ranges.insert(ranges.end(), mark.ranges.begin(), mark.ranges.end());
  marked_ranges_ = ranges.size();
  const Mark& last = marks_.back();
  missing_ = MissingSteps(last.last, std::move(ranges), last.holes, last.count);
  known_bytes_ = last.end;
}

void LogIndex::load() {
  if (!path_exists(path_)) return;
  LogLines lines(path_);
  while (const auto line = lines.next()) {
    const auto json = nlohmann::json::parse(*line);
    Mark mark;
    mark.end = json.at("end").get<index_t>();
    mark.crc = json.at("crc").get<std::uint32_t>();
    mark.last = json.at("last").get<index_t>();
    mark.holes = json.at("holes").get<index_t>();
    mark.count = json.at("lacking").get<index_t>();
    for (const auto& range : json.at("ranges")) {
      const StepRange read{range.at(0).get<index_t>(), range.at(1).get<index_t>()};
      const index_t before = mark.ranges.empty() ? -1 : mark.ranges.back().last;
      if (read.first <= before || read.last < read.first)
        throw_error(ExitCode::io, "{} is damaged (steps {} to {})", path_, read.first, read.last);
      mark.ranges.push_back(read);
    }
    if (mark.end <= marked_bytes()) throw_error(ExitCode::io, "{} is damaged", path_);
    marks_.push_back(std::move(mark));
  }
}

void LogIndex::save() {
  if (saved_ == marks_.size()) return;
  std::string text;
  for (const Mark& mark : marks_) {
    nlohmann::ordered_json json{{"end", mark.end},
                                {"crc", mark.crc},
                                {"last", mark.last},
                                {"holes", mark.holes},
                                {"lacking", mark.count}};
    json["ranges"] = nlohmann::ordered_json::array();
    for (const StepRange& range : mark.ranges) json["ranges"].push_back({range.first, range.last});
    text += json.dump() + "\n";
  }
  write_text_durably(path_, text);
  saved_ = marks_.size();
}

void LogIndex::take(index_t step, index_t end) {
  missing_.add(step);
  known_bytes_ = end;
  if (end - marked_bytes() < kMarkBytes) return;
  const std::vector<StepRange>& ranges = missing_.ranges();
  Mark mark{
      end, crc_before(FileReader(log_), end), *missing_.last(), missing_.holes(), missing_.count(),
      {}};
  // The last of those before may have become longer: never, as a step was heard behind it.
  mark.ranges.assign(ranges.begin() + static_cast<std::ptrdiff_t>(marked_ranges_), ranges.end());
  marked_ranges_ = ranges.size();
  marks_.push_back(std::move(mark));
}

void LogIndex::read_on(double seconds) {
  if (file_size(log_) <= known_bytes_) return;
  const auto begun = Clock::now();
  LogLines lines(log_, known_bytes_);
  for (index_t count = 1;; ++count) {
    if (count % kLinesAtOnce == 0 &&
        std::chrono::duration<double>(Clock::now() - begun).count() > seconds)
      return;
    const auto line = lines.next();
    if (!line) return;
    if (const auto step = step_of_line(*line)) take(*step, lines.offset());
    known_bytes_ = lines.offset();
  }
}

void LogIndex::add(index_t step, index_t begin, index_t end) {
  if (begin != known_bytes_) return;  // what is before was not looked at
  try {
    take(step, end);
    save();
  } catch (const std::exception&) {
    return;  // the next start reads more, that is all
  }
}

std::string StepLines::put(const std::string& line) {
  const index_t begin = file_.bytes();
  std::string reason = file_.put(line);
  const auto step = reason.empty() ? step_of_line(line) : std::nullopt;
  if (step) index_.add(*step, begin, file_.bytes());
  return reason;
}

MissingSteps missing_steps(const std::string& path, index_t most_bytes) {
  const index_t size = file_size(path);
  if (size < 0) return MissingSteps();
  LogIndex index(path);
  if (size - index.known_bytes() <= most_bytes) {
    index.read_on(std::numeric_limits<double>::infinity());
    return index.missing();
  }
  MissingSteps missing;
  LogLines lines(path, size - most_bytes);
  static_cast<void>(lines.next());  // maybe not from its beginning
  while (const auto line = lines.next())
    if (const auto step = step_of_line(*line)) missing.add(*step);
  return missing;
}

}  // namespace t3d
