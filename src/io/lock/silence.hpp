// How long a file has shown no sign of life, by the looks of this process and its own monotonic
// clock. Clocks of other hosts and times of files are compared with themselves only.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "core/types.hpp"

namespace t3d {

/// Between two renewals of a lock.
inline constexpr double kRenewalSeconds = 2;
/// Silence that was observed for so long is the end of the owner. 30 renewals that did not come:
/// servers and networks of file systems come back within a minute as a rule.
inline constexpr double kLockExpiresSeconds = 60;

/// What an owner changes when it renews its file.
struct LifeSign {
  std::string token;
  index_t beats = 0;         // of its record
  std::int64_t renewed = 0;  // ns, time of change of the file: whose clock set it does not matter
  std::uint64_t file = 0;    // inode
  friend bool operator==(const LifeSign&, const LifeSign&) = default;
};

class Silence {
 public:
  /// What is seen just now, at `now_seconds` by a monotonic clock. Returns how long nothing else
  /// was seen. Two looks count for one renewal at most, however far apart: while this process was
  /// stopped, or the file system answered nobody, it has observed nothing.
  double look(const LifeSign& sign, double now_seconds);
  double look(const LifeSign& sign);
  [[nodiscard]] double seconds() const { return seconds_; }

 private:
  std::optional<LifeSign> last_;
  double looked_ = 0, seconds_ = 0;
};

}  // namespace t3d
