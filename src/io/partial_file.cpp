#include "io/partial_file.hpp"

#include <filesystem>
#include <mutex>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "io/lock/lock_owner.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

/// Names of all that is in the making. Never destroyed: a signal may come while the program exits.
struct Registry {
  std::mutex lock;
  std::set<std::string> names;
};
Registry& registry() {
  static auto& all = *new Registry;
  return all;
}

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

PartialPath::PartialPath(std::string path)
    : path_(std::move(path)), name_(path_ + ".partial-" + random_token()) {
  const std::lock_guard guard(registry().lock);
  registry().names.insert(name_);
}

PartialPath::~PartialPath() {
  const std::lock_guard guard(registry().lock);
  registry().names.erase(name_);
  std::error_code ignored;
  if (!published_) std::filesystem::remove_all(name_, ignored);
}

void PartialPath::rename() {
  sync_path(name_);
  const std::lock_guard guard(registry().lock);
  rename_durably(name_, path_);
  published_ = true;
  registry().names.erase(name_);
}

TemporaryName::TemporaryName(std::string name) : name_(std::move(name)) {
  const std::lock_guard guard(registry().lock);
  registry().names.insert(name_);
}

TemporaryName::~TemporaryName() {
  const std::lock_guard guard(registry().lock);
  registry().names.erase(name_);
}

PartialFile::PartialFile(const std::string& path) : PartialPath(replaceable_file(path)) {
  make_folder(folder_of(this->path()));
}

PartialFolder::PartialFolder(const std::string& path) : PartialPath(without_slash(path)) {
  check_free(this->path());
  make_folder(name());
}

// A rename takes the place of an empty folder, and of nothing else.
void PartialFolder::publish() {
  check_free(path());
  rename();
}

void remove_partial_files() {
  registry().lock.lock();
  std::error_code ignored;
  for (const std::string& name : registry().names) std::filesystem::remove_all(name, ignored);
}

}  // namespace t3d
