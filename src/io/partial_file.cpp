#include "io/partial_file.hpp"

#include <unistd.h>

#include <filesystem>
#include <mutex>
#include <set>
#include <utility>

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

PartialFolder::PartialFolder(std::string path) : path_(std::move(path)) {
  const std::lock_guard guard(registry().lock);
  registry().names.insert(path_);
}

PartialFolder::~PartialFolder() {
  const std::lock_guard guard(registry().lock);
  registry().names.erase(path_);
}

void remove_partial_files() {
  registry().lock.lock();
  std::error_code ignored;
  for (const std::string& name : registry().names) std::filesystem::remove_all(name, ignored);
}

}  // namespace t3d
