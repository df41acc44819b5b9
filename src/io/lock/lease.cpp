#include "io/lock/lease.hpp"

#include <optional>

#include "core/error.hpp"
#include "io/lock/lock_file.hpp"

namespace t3d {
namespace {

std::optional<LockFile::Holder> holder_of(const std::string& path) {
  try {
    return read_lock(path);
  } catch (const std::exception&) {
    throw_error(ExitCode::io, "cannot read {}: is it still ours?", path);
  }
}

}  // namespace

void Lease::check() const {
  for (const std::string& path : files) {
    const std::optional<LockFile::Holder> now = holder_of(path);
    if (now && now->owner && now->owner->token == token) continue;
    const bool other = now && now->owner;
    throw_error(
        ExitCode::unavailable, "{} is not ours any more: {}. This job ends", path,
        other ? "it was taken over by " + describe(*now->owner) : "somebody has removed it");
  }
}

}  // namespace t3d
