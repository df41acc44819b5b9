// The lock of a run folder: who is refused, who takes over, and what a lost lock does.
#include "io/lock/run_lock.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "core/error.hpp"
#include "io/lock/lock_file.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"

using namespace t3d;
using namespace t3d::test;
namespace fs = std::filesystem;

namespace {

std::string lock_of(const ScratchFolder& folder) { return folder.path() + "/run.lock"; }

void write_lock(const ScratchFolder& folder, const LockOwner& owner, int seconds_old = 0) {
  const std::string path = lock_of(folder);
  std::ofstream(path) << format_owner(owner);
  struct timespec times[2];
  ::clock_gettime(CLOCK_REALTIME, &times[0]);
  times[0].tv_sec -= seconds_old;
  times[1] = times[0];
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

/// A process of another host, without a job.
LockOwner stranger() {
  LockOwner owner = this_process("other");
  owner.host = "elsewhere";
  owner.boot = "another boot";
  owner.job = "";
  return owner;
}

struct GaveUp {};

/// True when the lock is taken without being waited for.
bool taken_at_once(const ScratchFolder& folder) {
  try {
    const RunLock lock({folder.path()}, "r", [](const std::string&) { throw GaveUp(); });
    lock.check();
    return true;
  } catch (const GaveUp&) {
    return false;
  }
}

/// A process that takes the lock and then waits to be killed.
pid_t holding_process(const ScratchFolder& folder) {
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const RunLock lock({folder.path()}, "child", [](const std::string&) {});
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  ::close(ready[0]);
  ::close(ready[1]);
  return child;
}

/// But for the trace of who took the lock last.
std::size_t files_in(const ScratchFolder& folder) {
  std::size_t files = 0;
  for (const auto& file : fs::directory_iterator(folder.path()))
    if (file.path().filename() != ".run.lock.last") ++files;
  return files;
}

}  // namespace

TEST_CASE("a lock is held, then given back with nothing left behind") {
  const ScratchFolder folder("lock");
  {
    RunLock lock({folder.path(), folder.path() + "/."}, "name", [](const std::string&) {});
    lock.set_run("name-77");
    CHECK_NOTHROW(lock.check());
    CHECK(files_in(folder) == 1);
    std::ifstream file(lock_of(folder));
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const auto owner = parse_owner(text);
    REQUIRE(owner.has_value());
    CHECK(owner->pid == ::getpid());
    CHECK(owner->run == "name-77");
    CHECK(owner->token == lock.lease().token);
  }
  CHECK(files_in(folder) == 0);
}

TEST_CASE("an owner that is alive is refused to others, by name") {
  const ScratchFolder folder("lock");
  const pid_t child = holding_process(folder);
  try {
    const RunLock second({folder.path()}, "second", [](const std::string&) {});
    FAIL("two owners");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::unavailable);
    CHECK(std::string(error.what()).find(std::to_string(child)) != std::string::npos);
    CHECK(std::string(error.what()).find("run child") != std::string::npos);
  }
  CHECK(files_in(folder) == 1);
  ::kill(child, SIGKILL);
  CHECK(::waitpid(child, nullptr, 0) == child);
  CHECK(taken_at_once(folder));
}

TEST_CASE("a killed owner is a zombie before it is gone: the lock is free at once") {
  const ScratchFolder folder("lock");
  const pid_t child = holding_process(folder);
  ::kill(child, SIGKILL);
  siginfo_t ended;
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) == 0);
  CHECK(taken_at_once(folder));
  ::waitpid(child, nullptr, 0);
}

TEST_CASE("owners that are certainly dead, and such that may be alive") {
  const ScratchFolder folder("lock");
  LockOwner owner = this_process("r");  // this very process, but the number was given anew
  owner.started -= 1;
  write_lock(folder, owner);
  CHECK(taken_at_once(folder));

  write_lock(folder, stranger());
  CHECK_FALSE(taken_at_once(folder));
  // What the clock that set its time says of its age proves nothing.
  write_lock(folder, stranger(), 65);
  CHECK_FALSE(taken_at_once(folder));

  std::ofstream(lock_of(folder)) << "not a record";
  CHECK_FALSE(taken_at_once(folder));
  CHECK(fs::exists(lock_of(folder)));
}

TEST_CASE("Slurm's restart of a job takes the lock of the start before, and of no other job") {
  const ScratchFolder folder("lock");
  ::setenv("SLURM_JOB_ID", "815", 1);
  ::setenv("SLURM_CLUSTER_NAME", "c", 1);
  ::setenv("SLURM_RESTART_COUNT", "2", 1);
  struct Case {
    const char *cluster, *job;
    index_t restarts;
    bool taken;
  };
  for (const Case& one :
       {Case{"c", "815", 1, true}, Case{"c", "815", 2, false}, Case{"c", "815", 3, false},
        Case{"c", "816", 1, false}, Case{"d", "815", 1, false}, Case{"", "", 0, false}}) {
    CAPTURE(one.cluster, one.job, one.restarts);
    LockOwner owner = stranger();
    owner.cluster = one.cluster;
    owner.job = one.job;
    owner.restarts = one.restarts;
    write_lock(folder, owner);
    CHECK(taken_at_once(folder) == one.taken);
  }
  for (const char* name : {"SLURM_JOB_ID", "SLURM_CLUSTER_NAME", "SLURM_RESTART_COUNT"})
    ::unsetenv(name);
}

TEST_CASE("of many who take over at once, exactly one wins") {
  for (int trial = 0; trial < 25; ++trial) {
    const ScratchFolder folder("lock");
    LockOwner dead = this_process("r");
    dead.started -= 1;
    if (trial % 2 == 0) write_lock(folder, dead);
    std::atomic<int> winners{0}, ready{0};
    std::vector<std::unique_ptr<LockFile>> files(8);
    std::vector<std::thread> threads;
    for (auto& file : files)
      threads.emplace_back([&] {
        file = std::make_unique<LockFile>(folder.path(), this_process("r"));
        for (++ready; ready < 8;) std::this_thread::yield();
        for (int tries = 0; tries < 5; ++tries)
          if (!file->try_take()) {
            ++winners;
            return;
          }
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(winners == 1);
    files.clear();
    CHECK(files_in(folder) == 0);
  }
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Seconds from the first look until it is taken, looking every tenth of a second; at most a
/// minute.
double seconds_until_taken(LockFile& file) {
  const double start = seconds_now();
  while (file.try_take() && seconds_now() < start + 60)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  return seconds_now() - start;
}

TEST_CASE("silence is what was observed: neither times of files nor long pauses count") {
  Silence silence;
  LifeSign sign{"ab", 1, 1'000'000'000, 7};
  CHECK(silence.look(sign, 0) == 0);
  CHECK(silence.look(sign, 1.5) == 1.5);
  CHECK(silence.look(sign, 500) == 1.5 + kRenewalSeconds);  // nobody has looked for so long
  sign.beats = 2;                                           // with the same time of the file
  CHECK(silence.look(sign, 501) == 0);
  sign.renewed -= 75'000'000'000;
  CHECK(silence.look(sign, 502) == 0);
  CHECK(silence.look(sign, 503) == 1);
}

TEST_CASE("a lock is taken after silence that was observed, whatever its time says") {
  for (const int seconds_old : {100, -100}) {
    const ScratchFolder folder("lock");
    write_lock(folder, stranger(), seconds_old);
    LockFile file(folder.path(), this_process("r"), kLockName, 0.5);
    const double seconds = seconds_until_taken(file);
    CHECK(seconds >= 0.5);
    CHECK(seconds < 60);
  }
}

TEST_CASE("a lock whose owner writes the same time again and again, but counts, is alive") {
  const ScratchFolder folder("lock");
  LockOwner owner = stranger();
  LockFile file(folder.path(), this_process("r"), kLockName, 0.5);
  for (int look = 0; look < 12; ++look) {
    ++owner.beats;
    write_lock(folder, owner, 100);
    CHECK(file.try_take().has_value());
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  CHECK(seconds_until_taken(file) < 60);
}

TEST_CASE("a process that is there is never taken for dead by its silence") {
  const ScratchFolder folder("lock");
  LockOwner owner = this_process("r");
  write_lock(folder, owner, 100);
  LockFile file(folder.path(), this_process("r"), kLockName, 0.3);
  for (int look = 0; look < 10; ++look) {
    CHECK(file.try_take().has_value());
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

TEST_CASE("claims and drafts that dead processes left behind expire") {
  const ScratchFolder folder("lock");
  const LockOwner dead = stranger();
  write_lock(folder, dead);
  const std::string claim = lock_of(folder) + ".after-" + dead.token;
  const std::string draft = lock_of(folder) + ".0123456789abcdef";
  std::ofstream(claim) << "";
  std::ofstream(draft) << "";
  LockFile file(folder.path(), this_process("r"), kLockName, 0.5);
  const double start = seconds_now();
  CHECK(file.try_take().has_value());
  CHECK(fs::exists(claim));
  CHECK(seconds_until_taken(file) < 60);
  CHECK(seconds_now() - start >= 0.5);
  std::string note;
  for (int look = 0; look < 300 && fs::exists(draft); ++look) {
    CHECK(fs::exists(lock_of(folder)));
    CHECK(file.renew(note) == LockFile::Standing::ours);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  CHECK_FALSE(fs::exists(draft));
  CHECK(note.empty());
  CHECK(files_in(folder) == 1);
}

TEST_CASE("whoever has lost the lock is told, and leaves the other's alone") {
  const ScratchFolder folder("lock");
  {
    const RunLock lock({folder.path()}, "r", [](const std::string&) {});
    fs::remove(lock_of(folder));
    write_lock(folder, stranger());
    try {
      lock.check();
      FAIL("the loss was not seen");
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::unavailable);
      CHECK(std::string(error.what()).find("elsewhere") != std::string::npos);
    }
    for (int tries = 0; tries < 700 && !lock.lost(); ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK(lock.lost());
  }
  CHECK(fs::exists(lock_of(folder)));
}

TEST_CASE("a lock whose file is gone is taken again, once, with the same token") {
  const ScratchFolder folder("lock");
  RunLock lock({folder.path()}, "r", [](const std::string&) {});
  fs::remove(lock_of(folder));
  CHECK_NOTHROW(lock.check());  // waits for it
  CHECK(fs::exists(lock_of(folder)));
  CHECK_FALSE(lock.lost());
  // The thread that renews warns after it.
  std::vector<std::string> warnings;
  for (int tries = 0; tries < 1000 && warnings.empty(); ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    warnings = lock.take_warnings();
  }
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("taken it again") != std::string::npos);
  CHECK(files_in(folder) == 1);
}

TEST_CASE("whoever has had a removed lock in between is noticed, and it is not taken back") {
  for (const int seconds : {0, 5}) {  // between two renewals, or seen by one
    CAPTURE(seconds);
    const ScratchFolder folder("lock");
    RunLock lock({folder.path()}, "r", [](const std::string&) {});
    fs::remove(lock_of(folder));
    {
      LockFile other(folder.path(), this_process("visitor"));
      REQUIRE_FALSE(other.try_take());
      other.leave_trace();
      std::this_thread::sleep_for(std::chrono::seconds(seconds));
    }
    try {
      lock.check();
      FAIL("the loss was not seen");
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::unavailable);
    }
    CHECK(lock.lost());
    const std::vector<std::string> warnings = lock.take_warnings();
    CHECK(warnings.size() == (seconds == 0 ? 1 : 0));
    if (!warnings.empty())
      CHECK(warnings[0].find("run visitor has had it since") != std::string::npos);
    CHECK_FALSE(fs::exists(lock_of(folder)));
  }
}

TEST_CASE("whoever gives a removed lock back at once has done nothing with it") {
  const ScratchFolder folder("lock");
  RunLock lock({folder.path()}, "r", [](const std::string&) {});
  fs::remove(lock_of(folder));
  {
    LockFile other(folder.path(), this_process("visitor"));  // and is refused another folder's
    REQUIRE_FALSE(other.try_take());
  }
  CHECK_NOTHROW(lock.check());
  CHECK_FALSE(lock.lost());
  CHECK(fs::exists(lock_of(folder)));
}

TEST_CASE("a lock out of sight for a moment is ours still") {
  const ScratchFolder folder("lock");
  LockFile file(folder.path(), this_process("r"));
  REQUIRE_FALSE(file.try_take());
  fs::rename(lock_of(folder), folder.path() + "/hidden");
  std::string note;
  CHECK(file.renew(note) == LockFile::Standing::gone);
  fs::rename(folder.path() + "/hidden", lock_of(folder));
  CHECK(file.take_again(note) == LockFile::Standing::unclear);
  CHECK(file.renew(note) == LockFile::Standing::ours);
}

TEST_CASE("a record that came back as another file is renewed there") {
  const ScratchFolder folder("lock");
  LockFile file(folder.path(), this_process("r"));
  REQUIRE_FALSE(file.try_take());
  fs::copy_file(lock_of(folder), folder.path() + "/copy");
  fs::rename(folder.path() + "/copy", lock_of(folder));
  std::string note;
  CHECK(file.renew(note) == LockFile::Standing::ours);
  CHECK(note.find("does not show") != std::string::npos);
  const auto before = read_lock(lock_of(folder));
  note.clear();
  CHECK(file.renew(note) == LockFile::Standing::ours);
  CHECK(note.empty());
  CHECK(read_lock(lock_of(folder))->owner->beats == before->owner->beats + 1);
}

TEST_CASE("a folder that cannot be written is an error with its path") {
  CHECK_THROWS_WITH(RunLock({"/proc/self"}, "r", [](const std::string&) {}),
                    t3d::test::contains("/proc/"));
}
