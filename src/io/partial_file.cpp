#include "io/partial_file.hpp"

#include <unistd.h>

#include <filesystem>
#include <mutex>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "io/lock/lock_owner.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

/// Names of all files in the making. Never destroyed: a signal may come while the program exits.
struct Registry {
  std::mutex lock;
  std::set<std::string> names;
};
Registry& registry() {
  static auto& all = *new Registry;
  return all;
}

}  // namespace

PartialFile::PartialFile(const std::string& path)
    : path_(replaceable_file(path)), name_(path_ + ".partial-" + random_token()) {
  const std::string folder = std::filesystem::path(path_).parent_path().string();
  if (!folder.empty()) make_folder(folder);
  const std::lock_guard guard(registry().lock);
  registry().names.insert(name_);
}

PartialFile::~PartialFile() {
  const std::lock_guard guard(registry().lock);
  registry().names.erase(name_);
  if (!published_) ::unlink(name_.c_str());
}

void PartialFile::publish() {
  sync_path(name_);
  const std::lock_guard guard(registry().lock);
  rename_durably(name_, path_);
  published_ = true;
  registry().names.erase(name_);
}

namespace {

std::string without_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

void check_free(const std::string& path) {
  if (path.empty()) throw_error(ExitCode::usage, "the new folder has no name");
  if (path_exists(path) && !(is_folder(path) && list_folder(path).empty()))
    throw_error(ExitCode::usage, "{} is there already and is no empty folder; name a new one",
                path);
}

}  // namespace

PartialFolder::PartialFolder(const std::string& path)
    : path_(without_slash(path)), name_(path_ + ".partial-" + random_token()) {
  check_free(path_);
  {
    const std::lock_guard guard(registry().lock);
    registry().names.insert(name_);
  }
  make_folder(name_);
}

PartialFolder::~PartialFolder() {
  const std::lock_guard guard(registry().lock);
  registry().names.erase(name_);
  std::error_code ignored;
  if (!published_) std::filesystem::remove_all(name_, ignored);
}

// A rename takes the place of an empty folder, and of nothing else.
void PartialFolder::publish() {
  sync_path(name_);
  check_free(path_);
  const std::lock_guard guard(registry().lock);
  rename_durably(name_, path_);
  published_ = true;
  registry().names.erase(name_);
}

void remove_partial_files() {
  registry().lock.lock();
  std::error_code ignored;
  for (const std::string& name : registry().names) std::filesystem::remove_all(name, ignored);
}

}  // namespace t3d
