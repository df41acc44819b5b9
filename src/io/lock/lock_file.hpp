// One lock in one folder: DIR/run.lock, or of another name. How it is taken, taken over and given
// back stands in docs/decisions/009-run-lock-and-lineage.md. Internal to `io`.
//
// Times are the file system's own (of change, as it sets them), so that ages do not depend on the
// clocks of hosts. A lock is read through a fresh open, which NFS answers from the server.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "io/lock/lock_owner.hpp"
#include "io/partial_file.hpp"

namespace t3d {

inline constexpr const char* kLockName = "run.lock";
inline constexpr double kLockExpiresSeconds = 60;

class LockFile {
 public:
  /// What stands in the way of taking the lock.
  struct Holder {
    std::optional<LockOwner> owner;  // none: its record cannot be understood
    std::int64_t renewed = 0;        // ns; time of the last renewal
    double age_seconds = 0;          // since then
  };
  /// taken: by somebody else; gone: no file or no record; unknown: it cannot be read just now.
  enum class Standing { ours, taken, gone, unknown };

  /// Takes nothing yet. Error(io) when nothing can be written in `folder`.
  LockFile(const std::string& folder, const LockOwner& owner, const std::string& name = kLockName);
  /// Gives the lock back.
  ~LockFile();
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

  /// One try; nullopt when the lock is ours now. Error(io) when the folder fails.
  [[nodiscard]] std::optional<Holder> try_take();
  /// Tells the others that the owner is alive. Both never throw.
  void renew() const noexcept;
  [[nodiscard]] Standing standing() const noexcept;
  /// Who holds it now.
  [[nodiscard]] std::optional<Holder> holder() const;
  /// Writes the owner's record again, with another run.
  void set_run(const std::string& run) noexcept;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  bool create_lock();
  bool take_over(const Holder& holder);
  void drop_draft() noexcept;
  void drop_leftovers() noexcept;
  void give_back() noexcept;

  std::string path_, draft_;  // the draft becomes the lock
  TemporaryName draft_name_;
  LockOwner owner_;
  int fd_ = -1;
  bool held_ = false;
};

/// "process 4711 on node12, ...", or that its record cannot be understood.
[[nodiscard]] std::string describe(const LockFile::Holder& holder);

/// What a lock (or a claim) says; nothing when there is no such file. Error(io) when it cannot be
/// read. The age is not filled in.
[[nodiscard]] std::optional<LockFile::Holder> read_lock(const std::string& path);

}  // namespace t3d
