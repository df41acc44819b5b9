// A terminal that is drawn over and over: ANSI sequences and termios, nothing else. What is changed
// is put back by the destructor, while the program is stopped (Ctrl-Z), and when it is asked to
// end.
#pragma once
#include <termios.h>

#include <optional>
#include <string>
#include <vector>

namespace t3d {

/// Standard output is a terminal that knows ANSI sequences.
[[nodiscard]] bool can_draw();
/// The letters of this locale are UTF-8.
[[nodiscard]] bool has_utf8();

struct TerminalSize {
  int columns = 80, rows = 40;
};
/// 80 x 40 where there is no terminal.
[[nodiscard]] TerminalSize terminal_size();

class Terminal {
 public:
  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  /// In the place of what is shown.
  void show(const std::vector<std::string>& lines);
  /// Until a key, a change of the window, or so long. True: the user, or a signal, asks to end.
  [[nodiscard]] bool wait(double seconds);
  /// The signal that asked, or 0. After INT and q there is nothing to tell.
  [[nodiscard]] int signal() const;

 private:
  void enter();
  void leave();
  std::optional<termios> keys_;  // as they were; nothing where input is no terminal
  bool entered_ = false;
};

}  // namespace t3d
