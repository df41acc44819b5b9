#include "record/log/noise_log.hpp"

#include <algorithm>
#include <fstream>

#include "core/error.hpp"
#include "io/json_fields.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

struct LifeContext {
  index_t first_step = 0;
  double context = 0;
};

/// Of all lives, in their order.
std::vector<LifeContext> contexts_of(const std::string& path) {
  std::vector<LifeContext> contexts;
  if (!path_exists(path)) return contexts;
  const auto record = parse_object(read_text_file(path));
  if (!record || !record->contains("lives") || !record->at("lives").is_array()) return contexts;
  for (const auto& life : record->at("lives")) {
    if (!life.is_object()) continue;
    const auto first = count_of(life, "first_step");
    const auto context = number_of(life, "context");
    if (first && context && *context > 0) contexts.push_back({*first, *context});
  }
  return contexts;
}

/// A step that several lives did counts as the last one's, whose line the log keeps.
double context_of(const std::vector<LifeContext>& contexts, index_t step) {
  const auto last = std::find_if(contexts.rbegin(), contexts.rend(),
                                 [&](const LifeContext& one) { return one.first_step < step; });
  return last == contexts.rend() ? 0 : last->context;
}

}  // namespace

std::vector<LoggedNoise> logged_noise(const std::string& dir) {
  const std::string path = dir + "/log.jsonl";
  if (!path_exists(path)) throw_error(ExitCode::no_input, "{} has no log.jsonl", dir);
  std::ifstream file(path);
  if (!file) throw_error(ExitCode::io, "cannot read {}", path);
  const std::vector<LifeContext> contexts = contexts_of(dir + "/run.json");
  std::vector<LoggedNoise> steps;
  for (std::string line; std::getline(file, line);) {
    if (line.find("\"gradient_noise\"") == std::string::npos) continue;
    const auto json = parse_object(line);
    if (!json) continue;
    const auto step = count_of(*json, "step");
    const auto tokens = number_of(*json, "tokens"), signal = number_of(*json, "gradient_signal"),
               noise = number_of(*json, "gradient_noise");
    if (step && tokens && signal && noise)
      steps.push_back({*step, *tokens, context_of(contexts, *step), *signal, *noise});
  }
  if (file.bad()) throw_error(ExitCode::io, "cannot read {}", path);
  return steps;
}

}  // namespace t3d
