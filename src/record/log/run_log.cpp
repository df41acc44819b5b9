#include "record/log/run_log.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "core/counted.hpp"
#include "core/error.hpp"
#include "io/posix_file.hpp"
#include "record/log/append_file.hpp"
#include "record/log/csv_log.hpp"
#include "record/log/event_log.hpp"
#include "record/log/fill_up.hpp"
#include "record/log/log_index.hpp"
#include "record/log/progress_bar.hpp"
#include "record/log/run_record.hpp"

namespace t3d {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr double kPlainLineSeconds = 10;  // between plain lines beside a bar
constexpr double kBarSeconds = 0.1;       // between drawings of the bar
constexpr double kLookSeconds = 2;        // for the steps of earlier lives at a start
constexpr index_t kUntimedSteps = 2;      // the first ones allocate and plan

[[noreturn]] void cannot(const char* verb, const std::string& path, const std::string& reason) {
  throw_error(ExitCode::io, "cannot {} {}: {}", verb, path, reason);
}

std::string started_text(index_t start_step) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char date[32];
  std::strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &local);
  return fmt::format("---- {} start at step {}", date, start_step);
}

int terminal_columns(std::FILE* screen) {
  winsize size{};
  return ioctl(fileno(screen), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

/// What is handed over owns it: a thread that hangs in a file system's call outlives the log. Files
/// are touched by that thread alone, once they are open.
class RunLog::Impl : public std::enable_shared_from_this<RunLog::Impl> {
 public:
  explicit Impl(const RunLogOptions& options)
      : options_(options), bar_(options.progress && !options.quiet && is_terminal(options.screen)) {
    std::error_code error;
    fs::create_directories(options.dir, error);
    if (error) cannot("create", options.dir, error.message());
    human_ = std::make_unique<LineFile>(options.dir + "/run.log");
    const std::string reason = human_->put(started_text(options.start_step));
    if (!reason.empty() && options.start_step == 0) cannot("write", human_->path(), reason);
    if (!reason.empty()) say_lost(human_->path(), reason);
    open_step_logs();
    files_ = std::make_shared<FileService>();
  }

  ~Impl() { wipe_bar(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void note(const std::string& text) {
    if (!options_.quiet) screen_line(text);
    hand_line(text);
  }

  void warn(const std::string& text) {
    screen_line("warning: " + text);
    hand_line("warning: " + text);
  }

  void step(const StepRecord& record) {
    const bool kept = machine_ || table_ || events_;
    hand_record(kept ? std::make_shared<const StepRecord>(record) : nullptr);
    measure(record);
    const double left = static_cast<double>(record.steps - record.step) * step_seconds_;
    const bool ends =
        steps_seen_ == 1 || record.step == record.steps || !record.validations.empty();
    if (ends || record.step % options_.every_steps == 0) {
      const std::string line = step_line(record, left);
      hand_line(line);
      if (!options_.quiet && (!bar_ || ends || since(last_plain_) >= kPlainLineSeconds)) {
        screen_line(line);
        last_plain_ = Clock::now();
      }
    }
    if (bar_ && record.step < record.steps && since(last_bar_) >= kBarSeconds)
      draw_bar(record, left);
  }

  void finish(const EndTable& table) {
    std::string text = end_table_text(table);
    if (text.ends_with('\n')) text.pop_back();
    note(text);
  }

  void later(const std::string& what, const std::function<void()>& work) {
    hand(what, kRecordBytes, [work](Impl&) { work(); });
  }

  void sync() {
    if (machine_) hand(machine_->path(), kRecordBytes, [](Impl& log) { log.machine_->sync(); });
  }

  void settle(double seconds) {
    if (files_->wait(files_->newest(), seconds)) return;
    const std::string what = files_->what();
    over_ = true;
    if (const index_t left = files_->end(kMoment); left > 0)
      screen_line(fmt::format("warning: {} not written: {} has taken longer than {:.0f} s",
                              counted(left, "record of the logs is", "records of the logs are"),
                              what, seconds));
  }

  [[nodiscard]] FileService* files() const { return files_.get(); }
  [[nodiscard]] const std::string& dir() const { return options_.dir; }

 private:
  /// Memory of what waits, about.
  static constexpr index_t kRecordBytes = 2048, kRankBytes = 64;
  static constexpr double kMoment = 0.01;  // seconds

  /// Before the service is there: at once. What is refused, as a file system hangs, is counted.
  template <class Write>
  void hand(const std::string& path, index_t bytes, Write write) {
    if (!files_) return write(*this);
    if (over_) return;
    const bool taken = files_->put("writing " + path, bytes,
                                   [self = shared_from_this(), write = std::move(write)] {
                                     try {
                                       write(*self);
                                     } catch (const std::exception& error) {
                                       self->screen_line(fmt::format("warning: {}", error.what()));
                                     }
                                   });
    if (!taken && refused_++ == 0)
      screen_line(fmt::format(
          "warning: {} has taken longer than {:.0f} s: until it answers, the logs lack lines",
          files_->what(), FileService::kStandstill));
    // The service's own warnings do not wait for a file system, and say nothing about it.
    if (!taken || files_->is_own_thread()) return;
    const index_t lost = refused_.exchange(0);
    if (lost == 0) return;
    warn(fmt::format("the logs can be written again; {} missing",
                     counted(lost, "record is", "records are")));
  }

  // The logs share the record: that of many ranks is large.
  void hand_record(const std::shared_ptr<const StepRecord>& record) {
    if (!record) return;
    index_t bytes = kRecordBytes + kRankBytes * std::ssize(record->ranks);
    const auto next_bytes = [&] { return std::exchange(bytes, kRecordBytes); };
    if (machine_)
      hand(machine_->path(), next_bytes(),
           [record](Impl& log) { log.keep(*log.machine_, step_json(*record)); });
    if (table_)
      hand(table_->path(), next_bytes(), [record](Impl& log) { log.keep(*log.table_, *record); });
    if (events_)
      hand(events_->path(), next_bytes(), [record](Impl& log) { log.keep(*log.events_, *record); });
  }

  void hand_line(const std::string& line) {
    hand(human_->path(), kRecordBytes + std::ssize(line),
         [line](Impl& log) { log.keep(*log.human_, line); });
  }

  void open_step_logs() {
    std::set<StepForm> broken;
    for (const StepLogFault& fault :
         prepare_step_logs(options_.dir, options_.lineage, options_.start_step)) {
      say_fault(fault);
      if (!fault.usable) broken.insert(fault.form);
    }
    const auto open = [&](StepForm form, bool wanted, const std::string& name, const auto& work) {
      if (!wanted || broken.contains(form)) return;
      try {
        work(options_.dir + name);
      } catch (const Error& error) {
        if (options_.start_step == 0 || !error.refused()) throw;
        warn(fmt::format("{}; the run goes on without {}{}", error.what(), options_.dir, name));
      }
    };
    MissingSteps of_log;
    open(StepForm::json, options_.json, "/log.jsonl", [&](const std::string& path) {
      LogIndex index(path);
      say_missing(index);
      of_log = index.missing();
      machine_ = std::make_unique<StepLines>(path, std::move(index));
    });
    open(StepForm::csv, options_.csv, "/log.csv",
         [&](const std::string& path) { open_table(path, of_log); });
    open(StepForm::events, options_.tensorboard, "/tensorboard",
         [&](const std::string& folder) { open_events(folder, of_log); });
  }

  void say_fault(const StepLogFault& fault) {
    const std::string begins = fmt::format("step {}", options_.start_step);
    if (fault.usable)
      return warn(
          fmt::format("{} begins behind {}: the steps before cannot be copied from {}, "
                      "which has them ({})",
                      fault.path, begins, fault.source, fault.reason));
    warn(
        fmt::format("{} cannot be cut back to {} ({}); the run goes on without it: it keeps what "
                    "an earlier life did behind {}, and lacks the steps of this life",
                    fault.path, begins, fault.reason, begins));
  }

  /// What stands there and is no spreadsheet of steps is kept under another name: no reason to end
  /// a run that has its steps in log.jsonl.
  void open_spreadsheet(const std::string& path) {
    try {
      table_ = std::make_unique<CsvLog>(path);
    } catch (const Error& fault) {
      const std::string aside = damaged_name(path);
      if (!std::filesystem::is_regular_file(path) || ::rename(path.c_str(), aside.c_str()) != 0)
        throw;
      warn(fmt::format("{}; it is kept as {}", fault.what(), aside));
      table_ = std::make_unique<CsvLog>(path);
    }
  }

  void open_table(const std::string& path, const MissingSteps& of_log) {
    open_spreadsheet(path);
    fill(path, of_log, csv_steps(path), [&](const StepRecord& record) { keep(*table_, record); });
  }

  void open_events(const std::string& folder, const MissingSteps& of_log) {
    std::optional<EventLog> before;  // a file for each life, and one for what none has written
    fill(folder, of_log, logged_events(folder), [&](const StepRecord& record) {
      if (!before) before.emplace(folder, record.step - 1);
      keep(*before, record);
    });
    before.reset();
    events_ = std::make_unique<EventLog>(folder, options_.start_step);
  }

  void fill(const std::string& path, const MissingSteps& of_log, const StepsThere& is_there,
            const std::function<void(const StepRecord&)>& put) {
    const FilledUp filled = fill_up(options_.dir + "/log.jsonl", of_log, is_there, put);
    if (filled.steps > 0)
      note(fmt::format("{} is filled up with {} of log.jsonl, from step {} on", path,
                       counted(filled.steps, "step"), filled.first));
    else if (!is_there.first && options_.start_step > 0)
      note(fmt::format("{} begins with step {}: log.jsonl has none before", path,
                       options_.start_step + 1));
    if (filled.lacking.count() > 0)
      warn(
          fmt::format("{} lacks {}, which log.jsonl has; where it is moved away, the next start "
                      "makes it from log.jsonl",
                      path, filled.lacking.text()));
  }

  /// What stands before the steps of this life should be whole.
  void say_missing(LogIndex& index) {
    const std::string path = options_.dir + "/log.jsonl";
    if (file_size(path) > 0) index.read_on(kLookSeconds);
    try {
      index.save();
    } catch (const Error& error) {
      warn(fmt::format("{}: the next start reads {} once more", error.what(), path));
    }
    MissingSteps missing = index.missing();
    const index_t left = file_size(path) - index.known_bytes();
    const bool begins_here = options_.lineage.begins && options_.lineage.parent < 0;
    if (left > 0)
      warn(fmt::format(
          "{} was looked through for missing steps up to step {} in {:.0f} s; {} are "
          "left for the next start",
          path, missing.last().value_or(0), kLookSeconds, format_bytes(static_cast<double>(left))));
    else if (!missing.last() && options_.start_step > 0 && !begins_here)
      return warn(fmt::format("{} has no step, and the checkpoint is of step {}; the run goes on",
                              path, options_.start_step));
    else
      missing.expect_up_to(options_.start_step);
    if (missing.count() > 0)
      warn(fmt::format(
          "{} lacks {}: it was cut or edited, could not be written, log.json was off, or "
          "a life ended in its last evaluation; the run goes on",
          path, missing.text()));
  }

  static double since(Clock::time_point time) {
    return std::chrono::duration<double>(Clock::now() - time).count();
  }

  /// The mean follows slow changes; the first steps are not typical.
  void measure(const StepRecord& record) {
    ++steps_seen_;
    const bool fresh = steps_seen_ <= kUntimedSteps + 1;
    step_seconds_ = fresh ? record.seconds : 0.95 * step_seconds_ + 0.05 * record.seconds;
  }

  void say_lost(const std::string& path, const std::string& reason) {
    screen_line(
        fmt::format("warning: cannot write {}: {}; the run goes on without it", path, reason));
  }

  template <class File, class Record>
  void keep(File& file, const Record& record) {
    const index_t lost = file.lost();
    const std::string reason = file.put(record);
    if (!reason.empty() && lost == 0) say_lost(file.path(), reason);
    if (!reason.empty() || lost == 0) return;
    file.forget_lost();
    warn(fmt::format("{} can be written again; {} missing", file.path(),
                     counted(lost, "line is", "lines are")));
  }

  /// Not fmt::print: that throws when the screen is a file on a full disk.
  void screen_line(const std::string& text) {
    const std::lock_guard lock(screen_);
    wipe_bar();
    std::fputs((text + "\n").c_str(), options_.screen);
    std::fflush(options_.screen);
  }

  void draw_bar(const StepRecord& record, double left) {
    const std::string text = progress_text(record, left, terminal_columns(options_.screen));
    const std::lock_guard lock(screen_);
    std::fputs(("\r\033[K" + text).c_str(), options_.screen);
    std::fflush(options_.screen);
    bar_shown_ = true;
    last_bar_ = Clock::now();
  }

  void wipe_bar() {
    const std::lock_guard lock(screen_);
    if (!bar_shown_) return;
    std::fputs("\r\033[K", options_.screen);
    std::fflush(options_.screen);
    bar_shown_ = false;
  }

  RunLogOptions options_;
  std::shared_ptr<FileService> files_;
  std::recursive_mutex screen_;
  std::unique_ptr<LineFile> human_;
  std::unique_ptr<StepLines> machine_;
  std::unique_ptr<CsvLog> table_;
  std::unique_ptr<EventLog> events_;
  bool bar_, bar_shown_ = false;
  index_t steps_seen_ = 0;
  std::atomic<index_t> refused_ = 0;  // records, since the last one that was taken
  std::atomic<bool> over_ = false;    // nothing more is written
  double step_seconds_ = 0;
  Clock::time_point last_plain_{}, last_bar_{};
};

RunLog::RunLog() = default;
RunLog::RunLog(const RunLogOptions& options) : impl_(std::make_shared<Impl>(options)) {}
RunLog::~RunLog() { close(); }
RunLog::RunLog(RunLog&&) noexcept = default;
RunLog& RunLog::operator=(RunLog&& other) noexcept {
  close();
  impl_ = std::move(other.impl_);
  return *this;
}

void RunLog::close() noexcept {
  if (impl_) impl_->settle(FileService::kLastSeconds);
}

void RunLog::note(const std::string& text) {
  if (impl_) impl_->note(text);
}
void RunLog::warn(const std::string& text) {
  if (impl_) impl_->warn(text);
}
void RunLog::step(const StepRecord& record) {
  if (impl_) impl_->step(record);
}
void RunLog::finish(const EndTable& table) {
  if (impl_) impl_->finish(table);
}
void RunLog::write_resolved(const std::string& text) {
  if (impl_) write_text_durably(impl_->dir() + "/resolved.toml", text);
}
void RunLog::later(const std::string& what, std::function<void()> work) {
  if (!impl_) return work();
  impl_->later(what, work);
}
void RunLog::sync() {
  if (impl_) impl_->sync();
}
void RunLog::settle(double seconds) {
  if (impl_) impl_->settle(seconds);
}
FileService* RunLog::files() const { return impl_ ? impl_->files() : nullptr; }

}  // namespace t3d
