#include "io/file_service.hpp"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "comm/busy.hpp"

namespace t3d {
namespace {

struct Job {
  std::string what;
  index_t bytes = 0;
  std::function<void()> work;
};

double seconds_since(std::chrono::steady_clock::time_point time) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - time).count();
}

}  // namespace

thread_local FileService::State* FileService::served = nullptr;

/// The thread owns it too: one that hangs in a file system's call outlives the service.
struct FileService::State {
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  std::deque<Job> jobs;
  std::string what;  // is done now
  index_t bytes = 0, put = 0, done = 0;
  double standstill = kStandstill;
  std::chrono::steady_clock::time_point last_done = std::chrono::steady_clock::now();
  bool ended = false;
  std::thread::id thread;

  void serve() {
    served = this;
    std::unique_lock lock(mutex);
    thread = std::this_thread::get_id();
    for (;;) {
      changed.wait(lock, [&] { return ended || !jobs.empty(); });
      if (jobs.empty()) return;
      Job job = std::move(jobs.front());
      jobs.pop_front();
      what = job.what;
      lock.unlock();
      job.work();
      job.work = nullptr;  // with all that it owns
      lock.lock();
      what.clear();
      bytes -= job.bytes;
      ++done;
      last_done = std::chrono::steady_clock::now();
      changed.notify_all();
    }
  }

  /// With the mutex held.
  template <class Condition>
  bool wait_until(std::unique_lock<std::mutex>& lock, double seconds,
                  const Condition& condition) const {
    if (condition()) return true;
    const BusyScope busy(what.empty() ? "writing files" : what);
    if (seconds <= 0) {
      changed.wait(lock, condition);
      return true;
    }
    return changed.wait_for(lock, std::chrono::duration<double>(seconds), condition);
  }
};

FileService::FileService(index_t most_bytes)
    : state_(std::make_shared<State>()), most_(most_bytes) {
  std::thread([state = state_] { state->serve(); }).detach();
}

FileService::~FileService() { end(kLastSeconds); }

bool FileService::put(const std::string& what, index_t bytes, std::function<void()> work) {
  std::unique_lock lock(state_->mutex);
  if (state_->thread == std::this_thread::get_id()) {
    lock.unlock();
    work();
    return true;
  }
  // What is being done counts too; more than fits at all goes in alone.
  const auto has_room = [&] {
    return state_->ended || state_->done == state_->put || state_->bytes + bytes <= most_;
  };
  while (!has_room()) {
    const double still = seconds_since(state_->last_done);
    if (still >= state_->standstill) return false;
    state_->wait_until(lock, state_->standstill - still, has_room);
  }
  if (state_->ended) return false;
  if (state_->done == state_->put) state_->last_done = std::chrono::steady_clock::now();
  state_->jobs.push_back({what, bytes, std::move(work)});
  state_->bytes += bytes;
  ++state_->put;
  state_->changed.notify_all();
  return true;
}

bool FileService::is_own_thread() const {
  const std::lock_guard lock(state_->mutex);
  return state_->thread == std::this_thread::get_id();
}

void FileService::note_progress() {
  if (served == nullptr) return;
  const std::lock_guard lock(served->mutex);
  served->last_done = std::chrono::steady_clock::now();
}

void FileService::set_standstill(double seconds) {
  const std::lock_guard lock(state_->mutex);
  state_->standstill = seconds;
}

index_t FileService::newest() const {
  const std::lock_guard lock(state_->mutex);
  return state_->put;
}

bool FileService::is_done(index_t number) const {
  const std::lock_guard lock(state_->mutex);
  return state_->done >= number;
}

bool FileService::wait(index_t number, double seconds) const {
  std::unique_lock lock(state_->mutex);
  return state_->wait_until(lock, seconds, [&] { return state_->ended || state_->done >= number; });
}

index_t FileService::end(double seconds) {
  std::unique_lock lock(state_->mutex);
  if (state_->ended) return 0;
  if (state_->thread != std::this_thread::get_id())
    state_->wait_until(lock, seconds, [&] { return state_->done == state_->put; });
  state_->ended = true;
  state_->jobs.clear();
  const index_t left = state_->put - state_->done;
  state_->changed.notify_all();
  return left;
}

std::string FileService::what() const {
  const std::lock_guard lock(state_->mutex);
  return state_->what;
}

}  // namespace t3d
