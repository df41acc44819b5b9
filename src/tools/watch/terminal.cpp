#include "tools/watch/terminal.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "io/output.hpp"

namespace t3d {
namespace {

constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};

volatile std::sig_atomic_t asked = 0;    // to end, by this signal
volatile std::sig_atomic_t pausing = 0;  // Ctrl-Z

void note_signal(int signal) {
  if (signal == SIGTSTP)
    pausing = 1;
  else if (signal != SIGWINCH)
    asked = signal;
}

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kSignals) sigaddset(&set, signal);
  return set;
}

void put(const std::string& text) {
  write_output(text);
  flush_output();
}

}  // namespace

bool can_draw() {
  const char* kind = std::getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && kind != nullptr && *kind != '\0' &&
         std::string_view(kind) != "dumb";
}

bool has_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string text(value);
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    return text.find("utf-8") != std::string::npos || text.find("utf8") != std::string::npos;
  }
  return false;
}

TerminalSize terminal_size() {
  winsize size{};
  TerminalSize result;
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return result;
  if (size.ws_col > 0) result.columns = size.ws_col;
  if (size.ws_row > 0) result.rows = size.ws_row;
  return result;
}

Terminal::Terminal() {
  // They come only while wait() waits: nothing is drawn half.
  const sigset_t set = watched_signals();
  sigprocmask(SIG_BLOCK, &set, nullptr);
  struct sigaction action {};
  action.sa_handler = note_signal;
  for (const int signal : kSignals) sigaction(signal, &action, nullptr);
  termios keys{};
  if (isatty(STDIN_FILENO) == 1 && tcgetattr(STDIN_FILENO, &keys) == 0) keys_ = keys;
  enter();
}

Terminal::~Terminal() {
  try {
    leave();
  } catch (const std::exception&) {
    return;  // the terminal is gone
  }
}

// Another screen, without cursor and line breaks; keys come at once and are not shown.
void Terminal::enter() {
  if (keys_) {
    termios raw = *keys_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
  }
  entered_ = true;
  put("\033[?1049h\033[?25l\033[?7l");
}

void Terminal::leave() {
  if (!entered_) return;
  entered_ = false;
  if (keys_) tcsetattr(STDIN_FILENO, TCSADRAIN, &*keys_);
  put("\033[?7h\033[?25h\033[?1049l");
}

void Terminal::show(const std::vector<std::string>& lines) {
  std::string text = "\033[H";
  for (std::size_t at = 0; at < lines.size(); ++at)
    text += (at > 0 ? "\r\n" : "") + std::string("\033[K") + lines[at];
  // Behind the last line, which may end in the last column: not by \033[J from there.
  const bool room = std::ssize(lines) < terminal_size().rows;
  put(text + (room ? "\r\n\033[J" : ""));
}

bool Terminal::wait(double seconds) {
  pollfd keys{keys_ ? STDIN_FILENO : -1, POLLIN, 0};
  const auto whole = static_cast<std::time_t>(seconds);
  const timespec limit{whole, static_cast<long>(1e9 * (seconds - std::floor(seconds)))};
  sigset_t none;
  sigemptyset(&none);
  const int ready = ppoll(&keys, 1, &limit, &none);
  if (pausing != 0) {
    pausing = 0;
    leave();
    kill(getpid(), SIGSTOP);
    enter();
  }
  if (ready > 0) {
    char letters[64];
    const auto count = read(STDIN_FILENO, letters, sizeof letters);
    if (count <= 0) return true;  // the terminal is gone
    constexpr char kEnd = 4;      // Ctrl-D
    for (const char letter : std::string_view(letters, static_cast<std::size_t>(count)))
      if (letter == 'q' || letter == 'Q' || letter == kEnd) return true;
  }
  return asked != 0;
}

int Terminal::signal() const { return asked == SIGINT ? 0 : asked; }

}  // namespace t3d
