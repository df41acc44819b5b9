#include "io/log_tail.hpp"

#include <algorithm>

#include "io/json_fields.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

constexpr index_t kFirstLook = 1 << 16;  // bytes

std::string tail_of(const FileReader& file, index_t bytes) {
  std::string text(static_cast<std::size_t>(bytes), '\0');
  const index_t read = file.read_up_to(file.size() - bytes, text.data(), bytes);
  text.resize(static_cast<std::size_t>(read));
  return text;
}

}  // namespace

std::vector<std::string> last_lines(const std::string& path, index_t lines, index_t most_bytes) {
  if (!path_exists(path)) return {};
  const FileReader file(path);
  const index_t most = std::min(file.size(), most_bytes);
  index_t bytes = std::min(most, kFirstLook);
  std::string text = tail_of(file, bytes);
  // One newline more than lines: the first of them ends a line that may have begun before.
  while (bytes < most && std::count(text.begin(), text.end(), '\n') <= lines) {
    bytes = std::min(most, 4 * bytes);
    text = tail_of(file, bytes);
  }
  std::size_t at = bytes < file.size() ? text.find('\n') : std::string::npos;
  at = at == std::string::npos ? (bytes < file.size() ? text.size() : 0) : at + 1;
  std::vector<std::string> found;
  for (std::size_t end; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    found.push_back(text.substr(at, end - at));
  const auto wanted = std::min(lines, std::ssize(found));
  found.erase(found.begin(), found.end() - wanted);
  return found;
}

std::vector<LoggedStep> last_steps(const std::string& dir, index_t count) {
  std::vector<LoggedStep> steps;
  for (const std::string& line : last_lines(dir + "/log.jsonl", count)) {
    const auto json = parse_object(line);
    if (!json) continue;
    const auto step = count_of(*json, "step");
    if (!step) continue;
    steps.push_back({*step, count_of(*json, "steps"), number_of(*json, "loss"),
                     number_of(*json, "valid_loss"), number_of(*json, "valid_loss_whole"),
                     number_of(*json, "seconds"), number_of(*json, "tokens_per_second")});
  }
  return steps;
}

}  // namespace t3d
