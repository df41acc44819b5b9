// The end of a log, without reading the whole of it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace t3d {

/// The last whole lines of a file, at most so many and of at most so many bytes, the oldest first,
/// without their newlines; what stands behind the last newline is no line. None when there is no
/// such file; Error(io) when it cannot be read.
[[nodiscard]] std::vector<std::string> last_lines(const std::string& path, index_t lines,
                                                  index_t most_bytes = 4 << 20);

/// What a line of log.jsonl says of its step.
struct LoggedStep {
  index_t step = 0;
  std::optional<index_t> steps;
  std::optional<double> loss, valid_loss, valid_loss_whole, seconds, tokens_per_second{};
};

/// The last records of DIR/log.jsonl, the oldest first; lines that are none are passed over.
[[nodiscard]] std::vector<LoggedStep> last_steps(const std::string& dir, index_t count);

}  // namespace t3d
