#include "io/checkpoint/checkpoint_files.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <tuple>

#include "core/error.hpp"

namespace t3d {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStepPrefix = "step-";
constexpr const char* kLineageSuffix = ".lineage-";
constexpr const char* kPartialSuffix = ".partial-";
constexpr const char* kRemovedSuffix = ".removed";  // behind the partial one of what was published

/// Takes `prefix` and the digits behind it off the front of `text`.
std::optional<index_t> take_number(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  const char* begin = text.data() + prefix.size();
  const char* end = text.data() + text.size();
  index_t value = -1;
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || value < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return value;
}

std::optional<CheckpointFolder> parse_name(std::string_view name) {
  CheckpointFolder folder;
  const auto step = take_number(name, kStepPrefix);
  if (!step) return std::nullopt;
  folder.step = *step;
  folder.lineage = take_number(name, kLineageSuffix).value_or(0);
  folder.attempt = take_number(name, ".").value_or(0);
  if (!name.empty()) return std::nullopt;
  return folder;
}

std::string name_of(const CheckpointState& state) {
  std::string name = fmt::format("{}{:08}", kStepPrefix, state.step);
  if (state.lineage.number > 0) name += kLineageSuffix + std::to_string(state.lineage.number);
  return name;
}

}  // namespace

std::vector<CheckpointFolder> list_checkpoints(const std::string& dir) {
  std::vector<CheckpointFolder> folders;
  for (const std::string& name : list_folder(dir)) {
    auto folder = parse_name(name);
    if (!folder) continue;
    folder->path = dir + "/" + name;
    if (!is_folder(folder->path)) continue;
    folder->published = path_exists(folder->path + "/" + kManifestName);
    folders.push_back(std::move(*folder));
  }
  std::sort(folders.begin(), folders.end(), [](const auto& a, const auto& b) {
    return std::tie(a.step, a.lineage, a.attempt) > std::tie(b.step, b.lineage, b.attempt);
  });
  return folders;
}

std::string make_partial_folder(const std::string& dir, const CheckpointState& state,
                                const std::string& owner) {
  make_folder(dir);
  const std::string path = dir + "/" + name_of(state) + kPartialSuffix + owner;
  remove_checkpoint(path, owner);  // of this owner's own earlier try
  if (path_exists(path)) throw_error(ExitCode::io, "cannot remove the unfinished {}", path);
  try {
    make_folder(path);
  } catch (const Error&) {
    remove_checkpoint(path, owner);  // it may be there, only not durably
    throw;
  }
  return path;
}

std::string publish_folder(const std::string& partial, const std::string& dir,
                           const CheckpointState& state, const std::string& owner) {
  const std::string plain = dir + "/" + name_of(state);
  std::string path = plain;
  for (int attempt = 1;; ++attempt) {
    const bool free = !path_exists(path);
    if (free && std::rename(partial.c_str(), path.c_str()) == 0) break;
    if (free && errno != ENOTEMPTY && errno != EEXIST)
      throw_error(ExitCode::io, "cannot rename {} to {}: {}", partial, path, std::strerror(errno));
    path = fmt::format("{}.{}", plain, attempt);
  }
  try {
    sync_path(dir);
  } catch (const Error&) {
    remove_checkpoint(path, owner);  // it is reported as not saved
    throw;
  }
  return path;
}

void remove_checkpoint(const std::string& path, const std::string& owner) noexcept {
  try {
    std::string partial = path;
    if (path.find(kPartialSuffix) == std::string::npos) {
      partial += kPartialSuffix + owner + kRemovedSuffix;
      if (std::rename(path.c_str(), partial.c_str()) != 0) return;
    }
    std::error_code ignored;
    fs::remove_all(partial, ignored);
  } catch (const std::exception&) {
    return;  // what is left is no checkpoint
  }
}

void remove_partial_folders(const std::string& dir, const std::string& owner) {
  for (const std::string& name : list_folder(dir))
    if (name.starts_with(kStepPrefix) && name.find(kPartialSuffix) != std::string::npos &&
        !name.ends_with(kPartialSuffix + owner))
      remove_checkpoint(dir + "/" + name, owner);
}

std::string read_manifest_text(const std::string& path) {
  const std::string name = path + "/" + kManifestName;
  if (file_size(name) > kManifestMostBytes)
    throw_error(ExitCode::io, "{} has {} bytes: too many for a manifest", name, file_size(name));
  return read_text_file(name);
}

namespace {

void check_size(const std::string& path, index_t expected) {
  const index_t bytes = file_size(path);
  if (bytes < 0) throw_error(ExitCode::io, "{} is missing", path);
  if (bytes != expected)
    throw_error(ExitCode::io, "{} has {} bytes instead of {}", path, bytes, expected);
}

}  // namespace

void check_files(const Manifest& manifest, const std::string& path) {
  for (const ManifestFile& file : manifest.files) {
    if (file.name == kMasterName) continue;  // for people and tools; loading does not need it
    check_size(path + "/" + file.name, file.bytes);
    if (!file.index.empty()) check_size(path + "/" + file.index, file.index_bytes);
  }
}

}  // namespace t3d
