#include "io/lock/lease.hpp"

#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include "core/error.hpp"
#include "io/lock/lock_file.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

std::optional<LockFile::Holder> holder_of(const std::string& path) {
  try {
    return read_lock(path);
  } catch (const std::exception&) {
    throw_error(ExitCode::io, "cannot read {}: is it still ours?", path);
  }
}

void check_file(const std::string& path, const std::string& token) {
  // Three renewals: at the next one the owner notices that the file is gone, or writes its record
  // again.
  constexpr int kLooks = 24;
  constexpr std::chrono::milliseconds kLook{250};
  std::optional<LockFile::Holder> now = holder_of(path);
  for (int look = 0; look < kLooks && (!now || !now->owner); ++look) {
    std::this_thread::sleep_for(kLook);
    now = holder_of(path);
  }
  if (now && now->owner && now->owner->token == token) return;
  const bool other = now && now->owner;
  const char* const nobody = now ? "its record cannot be read" : "somebody has removed it";
  throw_error(ExitCode::unavailable, "{} is not ours any more: {}. This job ends", path,
              other ? "it was taken over by " + describe(*now->owner) : nobody);
}

}  // namespace

void Lease::check() const {
  for (const std::string& path : files) check_file(path, token);
}

void Lease::check(const std::string& folder) const {
  for (const std::string& path : files) {
    std::error_code none;
    if (std::filesystem::equivalent(folder_of(path), folder, none)) check_file(path, token);
  }
}

}  // namespace t3d
