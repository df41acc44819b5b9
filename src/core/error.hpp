// Errors: one class, told apart by the exit code that the program must end with (sysexits numbers).
// Wrong input and missing things throw the named helpers; a broken promise inside the program is
// T3D_CHECK, always on. Nobody below app/main ends the process.
#pragma once
#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace t3d {

enum class ExitCode : int {
  done = 0,
  usage = 64,        // wrong command line
  no_input = 66,     // a file that should be read is not there
  unavailable = 69,  // a device or library is missing, or the run folder is another job's
  internal = 70,     // a bug
  io = 74,           // reading or writing failed, or no valid checkpoint
  retry = 75,        // stopped on purpose with a valid checkpoint; wants to continue
  peer_lost = 76,    // another rank died or does not answer
  config = 78,       // the input is wrong
};

/// An error that the user sees as `text`; `code()` becomes the exit status.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& text) : std::runtime_error(text), code_(code) {}
  [[nodiscard]] ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

/// The same error on every rank: they end in order, and one of them speaks.
class AgreedError : public Error {
 public:
  using Error::Error;
};

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
