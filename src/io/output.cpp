#include "io/output.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/error.hpp"

namespace t3d {
namespace {

[[noreturn]] void fail(int reason) {
  throw_error(ExitCode::io, "cannot write to standard output: {}",
              reason == 0 ? "the system gives no reason" : std::strerror(reason));
}

}  // namespace

void write_output(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail(errno);
}

void flush_output() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) fail(errno);
}

}  // namespace t3d
