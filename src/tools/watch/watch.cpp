// transformer3d watch: the state of a run, drawn anew as its files grow. Reads files and nothing
// else, like status.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <thread>

#include "io/output.hpp"
#include "io/posix_file.hpp"
#include "tools/commands.hpp"
#include "tools/watch/terminal.hpp"
#include "tools/watch/watch_frame.hpp"

namespace t3d {
namespace {

class Watch {
 public:
  explicit Watch(const WatchCommand& command)
      : command_(command), steps_(command.dir + "/log.jsonl"), status_(look_at_run(command.dir)) {
    read_steps();
  }

  void once() { write_output(text_of(frame())); }

  /// Until the user asks to end. The last screen stays.
  void draw() {
    int signal = 0;
    {
      Terminal terminal;
      terminal.show(frame());
      while (!terminal.wait(command_.interval)) {
        look();
        terminal.show(frame());
      }
      signal = terminal.signal();
    }
    if (signal == 0) return once();
    std::signal(signal, SIG_DFL);
    std::raise(signal);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    sigprocmask(SIG_UNBLOCK, &set, nullptr);
  }

  /// A line for each change, until the run has ended for good.
  void list() {
    std::string before;
    for (;;) {
      const std::string now =
          fmt::format("{} {}", name_of(status_.state), status_.last ? status_.last->step : -1);
      if (now != before) write_output(watch_line(status_) + "\n");
      flush_output();
      before = now;
      const bool comes_back = status_.exit && status_.exit->goes_on;
      if (!status_.alive() && status_.state != RunState::not_begun && !comes_back) return;
      std::this_thread::sleep_for(std::chrono::duration<double>(command_.interval));
      look();
    }
  }

 private:
  void look() {
    status_ = look_at_run(command_.dir);
    read_steps();
  }

  void read_steps() {
    steps_.read_on();
    add_missing(status_, steps_.missing());
  }

  [[nodiscard]] std::vector<std::string> frame() const {
    const TerminalSize size = terminal_size();
    const char* no_colour = std::getenv("NO_COLOR");
    const bool colour = can_draw() && (no_colour == nullptr || *no_colour == '\0');
    return watch_frame(status_, steps_, {size.columns, size.rows, has_utf8(), colour});
  }

  static std::string text_of(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return text;
  }

  const WatchCommand& command_;
  StepFollower steps_;
  RunStatus status_;
};

}  // namespace

namespace {

/// A run whose job still waits in the queue has no folder yet. Ctrl-C ends the wait.
void wait_for_folder(const WatchCommand& command) {
  if (path_exists(command.dir)) return;
  write_output(fmt::format("waits for a run in {}, which does not exist yet\n", command.dir));
  flush_output();
  while (!path_exists(command.dir))
    std::this_thread::sleep_for(std::chrono::duration<double>(command.interval));
}

}  // namespace

int run_watch(Communicator&, const CommandLine& command) {
  if (!command.watch.once) wait_for_folder(command.watch);
  Watch watch(command.watch);
  if (command.watch.once)
    watch.once();
  else if (can_draw())
    watch.draw();
  else
    watch.list();
  flush_output();
  return 0;
}

}  // namespace t3d
