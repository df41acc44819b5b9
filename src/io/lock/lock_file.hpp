// One lock in one folder: DIR/run.lock, or of another name. How it is taken, taken over and given
// back stands in docs/decisions/009-run-lock-and-lineage.md. Internal to `io`.
//
// No age depends on a clock of another host, or on whose time the file system gives to files: a
// lock, a claim or a draft counts as left behind when this process has seen it unchanged for a
// minute of its own time (silence.hpp). A lock is read through a fresh open, which NFS answers from
// the server.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "io/lock/lock_owner.hpp"
#include "io/lock/silence.hpp"
#include "io/partial_file.hpp"

namespace t3d {

inline constexpr const char* kLockName = "run.lock";

class LockFile {
 public:
  /// What stands in the way of taking the lock.
  struct Holder {
    std::optional<LockOwner> owner;  // none: its record cannot be understood
    LifeSign sign;
    double silent_seconds = 0;  // observed by this process, see Silence
  };
  /// taken: by somebody else; gone: no file; unclear: no record in it, or it cannot be read now.
  enum class Standing { ours, taken, gone, unclear };

  /// Takes nothing yet. Error(io) when nothing can be written in `folder`. `expires_seconds`: the
  /// observed silence after which others' files count as left behind.
  LockFile(const std::string& folder, const LockOwner& owner, const std::string& name = kLockName,
           double expires_seconds = kLockExpiresSeconds);
  /// Gives the lock back.
  ~LockFile();
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

  /// One try; nullopt when the lock is ours now. Error(io) when the folder fails.
  [[nodiscard]] std::optional<Holder> try_take();
  /// For the one that had the lock before, should its file have been removed: somebody else works
  /// here now. Not before all locks of a job are held: who gives them back at once has done
  /// nothing.
  void leave_trace() noexcept;
  /// Tells the others that the owner is alive, and looks whether they can see it: where the open
  /// file has become another one than that of the path, or does not answer any more, through the
  /// file of the path, if that is still ours. `note` receives what went wrong on the way.
  [[nodiscard]] Standing renew(std::string& note) noexcept;
  /// Takes a lock whose file is gone once more, with the same token. ours; taken: somebody else was
  /// faster, or has had it in between; else gone. `note` receives what happened.
  [[nodiscard]] Standing take_again(std::string& note) noexcept;
  [[nodiscard]] Standing standing() const noexcept;
  /// Who holds it now.
  [[nodiscard]] std::optional<Holder> holder() const;
  /// Writes the owner's record again, with another run.
  void set_run(const std::string& run) noexcept;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  [[nodiscard]] int open_draft() const;
  bool create_lock();
  [[nodiscard]] std::optional<LockOwner> last_taker() const noexcept;
  bool take_over(const Holder& holder);
  [[nodiscard]] bool write_record() const noexcept;
  [[nodiscard]] bool reopen();
  void drop_draft() noexcept;
  void list_leftovers() noexcept;
  void drop_leftovers() noexcept;
  void give_back() noexcept;

  std::string path_, draft_;  // the draft becomes the lock
  std::string trace_;         // says who has taken the lock last; stays when it is given back
  TemporaryName draft_name_;
  LockOwner owner_;
  double expires_seconds_;
  int fd_ = -1;
  bool held_ = false;
  std::string last_token_;  // in the trace, when this lock had been taken
  Silence silence_, claim_silence_;
  std::map<std::string, Silence> leftovers_;  // drafts and claims of others, by path
};

/// "process 4711 on node12, ...", or that its record cannot be understood.
[[nodiscard]] std::string describe(const LockFile::Holder& holder);

/// What a lock (or a claim) says; nothing when there is no such file. Error(io) when it cannot be
/// read. The silence is not filled in.
[[nodiscard]] std::optional<LockFile::Holder> read_lock(const std::string& path);

}  // namespace t3d
