#include "core/error.hpp"

#include <array>
#include <filesystem>
#include <new>
#include <string_view>
#include <system_error>

namespace t3d {
namespace {

constexpr std::array<ExitMeaning, 10> kMeanings{{
    {ExitCode::done, "done"},
    {ExitCode::usage, "the command line is wrong"},
    {ExitCode::diverged, "training diverged: the loss, the gradient or the weights are not finite"},
    {ExitCode::no_input, "a file or folder that should be read is not there"},
    {ExitCode::unavailable,
     "a device, a library or memory is not there, or another job holds the run folder"},
    {ExitCode::internal, "internal error: a bug, please report it"},
    {ExitCode::io, "reading or writing failed, or there is no valid checkpoint"},
    {ExitCode::retry,
     "stopped before the end, with a valid checkpoint or before the first step: start it again to "
     "continue"},
    {ExitCode::peer_lost,
     "a rank is lost, or does not answer (debug.lost_seconds; debug.watchdog_seconds; in a "
     "checkpoint debug.io_seconds)"},
    {ExitCode::config, "the input is wrong: all faults are listed, each with file:line:column"},
}};

Error file_error(const std::filesystem::filesystem_error& error) {
  const std::error_code reason = error.code();
  const bool missing = reason == std::errc::no_such_file_or_directory;
  return {missing ? ExitCode::no_input : ExitCode::io,
          fmt::format("cannot reach {}: {}", error.path1().string(), reason.message())};
}

}  // namespace

std::span<const ExitMeaning> exit_meanings() { return kMeanings; }

Error as_error(const std::exception& error) {
  if (const auto* own = dynamic_cast<const Error*>(&error)) return *own;
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&error))
    return file_error(*file);
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    return {ExitCode::unavailable, "out of memory"};
  if (const auto* system = dynamic_cast<const std::system_error*>(&error)) {
    const bool scarce = system->code() == std::errc::resource_unavailable_try_again ||
                        system->code() == std::errc::not_enough_memory;
    return {scarce ? ExitCode::unavailable : ExitCode::io, error.what()};
  }
  return {ExitCode::internal, fmt::format("internal error: {}", error.what())};
}

void check_failed(const char* file, int line, const char* condition, const std::string& text) {
  std::string_view path(file);
  if (const auto at = path.rfind("src/"); at != std::string_view::npos) path.remove_prefix(at);
  throw_error(ExitCode::internal, "internal error at {}:{}: {} does not hold: {}", path, line,
              condition, text);
}

}  // namespace t3d
