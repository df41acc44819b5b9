#include "io/checkpoint/checkpoint_history.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "core/error.hpp"

namespace t3d {
namespace {

namespace fs = std::filesystem;

bool same_place(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return fs::equivalent(a, b, ignored);
}

}  // namespace

History::History(const std::string& dir) : dir_(dir) {
  for (CheckpointFolder& folder : list_checkpoints(dir)) {
    if (!folder.published) {
      bare_.push_back(std::move(folder));
      continue;
    }
    Entry entry{std::move(folder), {}, false};
    entry.lineage.number = entry.folder.lineage;
    try {
      const std::string text = read_manifest_text(entry.folder.path);
      entry.lineage = parse_manifest(text, entry.folder.path).state.lineage;
      entry.read = true;
    } catch (const Error&) {
      entry.read = false;  // named when it is its turn to be loaded
    }
    entries_.push_back(std::move(entry));
  }
}

index_t History::newest() const {
  index_t number = -1;
  for (const Entry& entry : entries_) number = std::max(number, entry.lineage.number);
  return number;
}

const Lineage* History::lineage_of(index_t number) const {
  for (const Entry& entry : entries_)
    if (entry.read && entry.lineage.number == number) return &entry.lineage;
  return nullptr;
}

std::vector<std::string> History::candidates() const {
  if (entries_.empty() && !bare_.empty())
    throw_error(ExitCode::io,
                "{} holds {} but not one {}: nothing can be continued from there, and nothing is "
                "started over unasked. Put the manifests back, take a checkpoint with -r PATH, or "
                "start from the beginning with -r never",
                dir_, list_of(without_manifest(-1)), kManifestName);
  std::vector<std::string> paths;
  index_t most = std::numeric_limits<index_t>::max();
  for (index_t number = newest(); number >= 0;) {
    for (const Entry& entry : entries_)
      if (entry.lineage.number == number && entry.folder.step <= most)
        paths.push_back(entry.folder.path);
    const Lineage* lineage = lineage_of(number);
    if (lineage == nullptr || lineage->parent_lineage >= number) break;
    most = std::min(most, lineage->parent_step);
    number = lineage->parent_lineage;
  }
  return paths;
}

std::vector<std::string> History::without_manifest(index_t step) const {
  std::vector<std::string> paths;
  for (const CheckpointFolder& folder : bare_)
    if (folder.step > step) paths.push_back(folder.path);
  return paths;
}

std::vector<std::string> History::others(index_t lineage) const {
  std::vector<std::string> paths;
  for (const Entry& entry : entries_)
    if (entry.lineage.number != lineage) paths.push_back(entry.folder.path);
  return paths;
}

Lineage History::next(const CheckpointInfo* from) const {
  const index_t number = newest();
  Lineage lineage;
  lineage.number = number + 1;
  if (from == nullptr) return lineage;
  const auto head = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.lineage.number == number;
  });
  if (head != entries_.end() && same_place(head->folder.path, from->path))
    return from->state.lineage;
  fs::path path = fs::absolute(from->path).lexically_normal();
  if (path.filename().empty()) path = path.parent_path();  // "step-00000010/"
  const bool here = same_place(path.parent_path().string(), dir_);
  lineage.parent = here ? path.filename().string() : path.string();
  lineage.parent_run = from->state.run_id;
  lineage.parent_step = from->state.step;
  lineage.parent_lineage = here ? from->state.lineage.number : -1;
  return lineage;
}

std::string list_of(const std::vector<std::string>& paths) {
  constexpr std::size_t kMost = 6;
  std::string text;
  for (std::size_t n = 0; n < std::min(paths.size(), kMost); ++n)
    text += (n == 0 ? "" : ", ") + paths[n];
  if (paths.size() > kMost) text += fmt::format(" and {} more", paths.size() - kMost);
  return text;
}

}  // namespace t3d
