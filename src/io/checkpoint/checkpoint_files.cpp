#include "io/checkpoint/checkpoint_files.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>
#include <tuple>

#include "core/error.hpp"

namespace t3d {
namespace {

namespace fs = std::filesystem;

/// The digits of `text` from `at`, which moves behind them; -1 when there are none.
index_t digits(const std::string& text, std::size_t& at) {
  index_t value = -1;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + at, end, value);
  if (error != std::errc() || value < 0) return -1;
  at = static_cast<std::size_t>(stop - text.data());
  return value;
}

std::optional<CheckpointFolder> parse_folder(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with("step-")) return std::nullopt;
  CheckpointFolder folder;
  folder.path = path.string();
  std::size_t at = 5;
  folder.step = digits(name, at);
  if (folder.step < 0) return std::nullopt;
  if (at < name.size()) {
    if (name[at++] != '.') return std::nullopt;
    folder.attempt = digits(name, at);
    if (folder.attempt < 0 || at < name.size()) return std::nullopt;
  }
  std::error_code ignored;
  folder.published = fs::exists(path / kManifestName, ignored);
  return folder;
}

bool is_valid(const CheckpointFolder& folder) {
  if (!folder.published) return false;
  try {
    check_files(parse_manifest(read_manifest_text(folder.path), folder.path), folder.path);
    return true;
  } catch (const Error&) {
    return false;
  }
}

void retain(const CheckpointOptions& options, const std::string& published) {
  index_t kept = 0;
  bool older = false;  // than, or the same as, the one just published
  for (const CheckpointFolder& folder : list_checkpoints(options.dir)) {
    if (folder.path == published) {
      older = true;
      ++kept;
      continue;
    }
    const bool valid = is_valid(folder);
    const bool major = options.major_every > 0 && folder.step % options.major_every == 0;
    const bool among_newest = valid && kept < std::max<index_t>(options.keep, 1);
    if (among_newest) ++kept;
    if (valid && (among_newest || major)) continue;
    // What is newer and not valid may be somebody's evidence; what is older serves nobody.
    if (valid || older) remove_checkpoint(folder.path);
  }
}

}  // namespace

std::vector<CheckpointFolder> list_checkpoints(const std::string& dir) {
  std::vector<CheckpointFolder> folders;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(dir, missing)) {
    std::error_code ignored;
    if (!entry.is_directory(ignored)) continue;
    if (auto folder = parse_folder(entry.path())) folders.push_back(std::move(*folder));
  }
  std::sort(folders.begin(), folders.end(), [](const auto& a, const auto& b) {
    return std::tie(a.step, a.attempt) > std::tie(b.step, b.attempt);
  });
  return folders;
}

std::string prepare_folder(const std::string& dir, index_t step) {
  make_folder(dir);
  const std::string plain = fmt::format("{}/step-{:08}", dir, step);
  std::string path = plain;
  for (int attempt = 1; fs::exists(fs::path(path) / kManifestName); ++attempt)
    path = fmt::format("{}.{}", plain, attempt);
  remove_checkpoint(path);
  if (fs::exists(path)) throw_error(ExitCode::io, "cannot remove the unfinished {}", path);
  try {
    make_folder(path);
  } catch (const Error&) {
    remove_checkpoint(path);  // it may be there, only not durably
    throw;
  }
  return path;
}

void remove_checkpoint(const std::string& path) noexcept {
  std::error_code ignored;
  fs::remove(fs::path(path) / kManifestName, ignored);
  fs::remove_all(path, ignored);
}

void apply_retention(const CheckpointOptions& options, const std::string& published) noexcept {
  try {
    retain(options, published);
  } catch (const std::exception&) {
    return;  // the new checkpoint is safe; the old ones are looked at again after the next
  }
}

std::string read_manifest_text(const std::string& path) {
  return read_text_file(path + "/" + kManifestName);
}

void check_files(const Manifest& manifest, const std::string& path) {
  for (const ManifestFile& file : manifest.files) {
    if (file.name == kMasterName) continue;  // for people and tools; loading does not need it
    const index_t bytes = file_size(path + "/" + file.name);
    if (bytes < 0) throw_error(ExitCode::io, "{}/{} is missing", path, file.name);
    if (bytes != file.bytes)
      throw_error(ExitCode::io, "{}/{} has {} bytes instead of {}", path, file.name, bytes,
                  file.bytes);
  }
}

}  // namespace t3d
