// Errors: one class, told apart by the exit code that the program must end with (sysexits numbers;
// 65 and 76 have a meaning of their own here). A broken promise inside the program is T3D_CHECK,
// always on. Nobody below app/main ends the process.
#pragma once
#include <fmt/core.h>

#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

namespace t3d {

enum class ExitCode : int {
  done = 0,
  usage = 64,
  diverged = 65,
  no_input = 66,
  unavailable = 69,
  internal = 70,
  io = 74,
  retry = 75,
  peer_lost = 76,
  config = 78,
};

/// What an exit code means, for users: the one table of them. --help prints it, and a test compares
/// docs/03-running.md with it.
struct ExitMeaning {
  ExitCode code;
  const char* text;
};
[[nodiscard]] std::span<const ExitMeaning> exit_meanings();

/// An error that the user sees as `text`; `code()` becomes the exit status.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& text, bool refused = false)
      : std::runtime_error(text), code_(code), refused_(refused) {}
  [[nodiscard]] ExitCode code() const { return code_; }
  /// The system did not let the program read or write: this says nothing of what is in the file.
  [[nodiscard]] bool refused() const { return refused_; }

 private:
  ExitCode code_;
  bool refused_;
};

/// The same error on every rank: they end in order, and one of them speaks.
class AgreedError : public Error {
 public:
  using Error::Error;
};

/// The Error that an exception of a library amounts to: files that cannot be reached are `io` (with
/// their path) or `no_input`, what the system has too little of is `unavailable`, the rest is a
/// bug.
[[nodiscard]] Error as_error(const std::exception& error);

/// throw_error(ExitCode::io, "cannot write {}: {}", path, reason)
template <class... Args>
[[noreturn]] void throw_error(ExitCode code, fmt::format_string<Args...> text, Args&&... args) {
  throw Error(code, fmt::format(text, std::forward<Args>(args)...));
}

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& text);

}  // namespace t3d

/// A promise that only a bug can break; always on. T3D_CHECK(a == b, "rows {} and {}", a, b)
#define T3D_CHECK(condition, ...)                                                      \
  do {                                                                                 \
    if (!(condition)) [[unlikely]]                                                     \
      ::t3d::check_failed(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__)); \
  } while (false)
