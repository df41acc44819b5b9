#include "io/log/noise_log.hpp"

#include <fstream>

#include "core/error.hpp"
#include "io/log/json_fields.hpp"
#include "io/posix_file.hpp"

namespace t3d {

std::vector<LoggedNoise> logged_noise(const std::string& dir) {
  const std::string path = dir + "/log.jsonl";
  if (!path_exists(path)) throw_error(ExitCode::no_input, "{} has no log.jsonl", dir);
  std::ifstream file(path);
  if (!file) throw_error(ExitCode::io, "cannot read {}", path);
  std::vector<LoggedNoise> steps;
  for (std::string line; std::getline(file, line);) {
    if (line.find("\"gradient_noise\"") == std::string::npos) continue;
    const auto json = parse_object(line);
    if (!json) continue;
    const auto step = count_of(*json, "step");
    const auto tokens = number_of(*json, "tokens"), signal = number_of(*json, "gradient_signal"),
               noise = number_of(*json, "gradient_noise");
    if (step && tokens && signal && noise) steps.push_back({*step, *tokens, *signal, *noise});
  }
  if (file.bad()) throw_error(ExitCode::io, "cannot read {}", path);
  return steps;
}

}  // namespace t3d
