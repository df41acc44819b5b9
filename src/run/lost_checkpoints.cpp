#include "run/lost_checkpoints.hpp"

#include <fmt/core.h>

#include <filesystem>
#include <optional>

#include "config/config_load.hpp"
#include "core/error.hpp"
#include "io/checkpoint/checkpoint_glance.hpp"
#include "io/lives/life_files.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

struct SavedBefore {
  index_t life = 0, step = 0;
  std::optional<index_t> lineage;
  std::string path;  // empty where the life wrote it itself
};

/// What the last life had that wrote a checkpoint or went on from one. A life that began from
/// nothing, in a lineage that others had before, began in an empty folder because the user said so:
/// what was before that counts no more.
std::optional<SavedBefore> saved_before(const std::string& run) {
  constexpr index_t kMost = 1000;
  const std::vector<LifeRecord> lives = last_lives(run, kMost);
  std::optional<index_t> below;  // lineages that still count
  for (auto life = lives.rbegin(); life != lives.rend(); ++life) {
    if (!life->from_step) continue;
    if (below && life->lineage.value_or(0) >= *below) continue;
    if (has_progressed(*life)) return SavedBefore{life->life, *life->saved_step, life->lineage, ""};
    if (life->checkpoint)
      return SavedBefore{life->life, *life->from_step, life->lineage, *life->checkpoint};
    below = life->lineage.value_or(0);
  }
  return std::nullopt;
}

bool is_there(const SavedBefore& saved, const std::string& dir) {
  if (!saved.path.empty()) {
    const std::string name = std::filesystem::path(saved.path).filename().string();
    return path_exists(saved.path) || path_exists(dir + "/" + name);
  }
  const auto newest = newest_published(dir, saved.lineage);
  return newest && newest->lineage == saved.lineage.value_or(0) && newest->step >= saved.step;
}

/// Where the life before kept them, as far as that can be found out.
std::string folder_before(const std::string& run, const std::string& now) {
  try {
    const std::string input = run + "/resolved.toml";
    return parse_config(read_text_file(input), input).checkpoint.dir;
  } catch (const std::exception&) {
    return now;
  }
}

}  // namespace

std::string check_lost_checkpoints(const std::string& run, const std::string& checkpoints,
                                   bool found) {
  std::optional<SavedBefore> saved;
  try {
    saved = saved_before(run);
  } catch (const Error& error) {  // a checkpoint that is there is worth more than its record
    if (!found) throw;
    return fmt::format("whether checkpoints are lost is not known: {}", error.what());
  }
  if (!saved || (found && is_there(*saved, checkpoints))) return "";
  const std::string before = folder_before(run, checkpoints);
  const std::string where = saved->path.empty() ? "in " + before : "at " + saved->path;
  if (found)
    return fmt::format(
        "life {} of this run had a checkpoint of step {} {}, which is not there any more: steps "
        "are done again from an older one",
        saved->life, saved->step, where);
  throw_error(
      ExitCode::io,
      "{} holds no checkpoint, but life {} of this run had one of step {} {} "
      "({}/lives.jsonl). Was it moved or purged? Go on from a copy with -r PATH{}; -r never "
      "starts over from step 0",
      checkpoints, saved->life, saved->step, where, run,
      before == checkpoints ? ""
                            : fmt::format(", or with checkpoint.dir = \"{}\" as before", before));
}

}  // namespace t3d
