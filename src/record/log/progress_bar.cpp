#include "record/log/progress_bar.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

namespace t3d {

std::string progress_text(const StepRecord& record, double seconds_left, int columns) {
  const double done =
      record.steps > 0 ? static_cast<double>(record.step) / static_cast<double>(record.steps) : 0;
  const double share = std::clamp(done, 0.0, 1.0);
  const auto room = static_cast<std::size_t>(std::max(columns - 1, 0));  // the last column may wrap
  std::string text = fmt::format("{:3.0f}%  {}/{}  loss {:.4f}  {} tok/s  left {}", 100 * share,
                                 record.step, record.steps, record.loss,
                                 short_count(record.tokens_per_second), clock_time(seconds_left));
  if (text.size() > room) return text.substr(0, room);
  constexpr std::size_t kFrame = 3, kWidest = 40, kNarrowest = 5;  // "[", "] "
  const std::size_t width = std::min(kWidest, room - std::min(room, text.size() + kFrame));
  if (width < kNarrowest) return text;
  const auto filled = static_cast<std::size_t>(std::floor(share * static_cast<double>(width)));
  std::string bar(filled, '=');
  if (filled < width) bar += '>';
  bar.resize(width, ' ');
  return fmt::format("[{}] {}", bar, text);
}

bool is_terminal(std::FILE* screen) {
  if (isatty(fileno(screen)) != 1) return false;
  if (std::getenv("OMPI_COMM_WORLD_RANK") == nullptr) return true;
  std::error_code error;
  const auto output =
      std::filesystem::read_symlink(fmt::format("/proc/{}/fd/1", getppid()), error).string();
  return !error && (output.starts_with("/dev/pts/") || output.starts_with("/dev/tty"));
}

}  // namespace t3d
