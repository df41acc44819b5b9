#include "run/kept_input.hpp"

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "config/model_text.hpp"
#include "config/toml_input.hpp"
#include "core/parse_json.hpp"
#include "io/lock/lock_owner.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kMark = "# accepted ";

std::string kept_file(const std::string& dir) { return dir + "/accepted.toml"; }

std::string absolute(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

bool is_toml(const std::string& text) {
  try {
    (void)parse_toml(text, "");
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// The lines of [run] that can be read, each for itself.
std::string readable_run_table(const std::string& text) {
  std::string table, result = "[run]\n";
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string::npos) continue;
    if (line[begin] == '[') {
      table = line.substr(begin + 1, line.find_first_of("]# \t\r", begin) - begin - 1);
    } else if (table == "run" && is_toml(result + line + "\n")) {
      result += line + "\n";
    }
  }
  return result;
}

/// Slurm has started this job before, or it is not the first of a chain (jobs/chain.sbatch).
bool goes_on_by_itself(const Json& kept) {
  const char* chain = std::getenv("T3D_CHAIN");
  if (chain != nullptr && *chain != '\0') return true;
  const LockOwner self = this_process("");
  return self.restarts > 0 && !self.job.empty() && kept.value("job", "") == self.job &&
         kept.value("cluster", "") == self.cluster;
}

}  // namespace

void keep_input(const std::string& dir, const std::string& path, const std::string& text) {
  const LockOwner self = this_process("");
  const Json origin{{"from", absolute(path)}, {"cluster", self.cluster}, {"job", self.job}};
  const bool open_line = !text.empty() && text.back() != '\n';
  write_text_durably(kept_file(dir),
                     text + (open_line ? "\n" : "") + std::string(kMark) +
                         origin.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n");
}

std::optional<std::string> kept_input(const std::string& path, const std::string& text,
                                      const std::vector<std::string>& overrides) noexcept {
  try {
    const Config glance = glance_at_input(readable_run_table(text), path, overrides);
    const std::string file = kept_file(glance.run.dir);
    if (!path_exists(file)) return std::nullopt;
    std::string kept = read_text_file(file);
    const std::size_t mark = kept.rfind(kMark);
    if (mark == std::string::npos) return std::nullopt;
    const Json origin = parse_json<Json>(kept.substr(mark + kMark.size()), file);
    if (origin.value("from", "") != absolute(path) || !goes_on_by_itself(origin))
      return std::nullopt;
    return kept.substr(0, mark);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace t3d
