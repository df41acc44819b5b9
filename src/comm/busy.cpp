#include "comm/busy.hpp"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>

namespace t3d {
namespace {

using Clock = std::chrono::steady_clock;

struct OwnWork {
  std::string what;
  Clock::time_point since;
};

struct Board {
  std::mutex mutex;
  std::map<index_t, OwnWork> own;    // by number, the first is the oldest
  std::map<int, OwnWork> of_others;  // by rank
  index_t next = 0;
  std::atomic<int> others{0};
  std::atomic<double> limit{0};
};

/// Lives as long as the process: threads that end with it may still be busy.
Board& board() {
  static Board& instance = *new Board;  // NOLINT
  return instance;
}

double seconds_since(Clock::time_point time) {
  return std::chrono::duration<double>(Clock::now() - time).count();
}

}  // namespace

BusyScope::BusyScope(const std::string& what) {
  const std::lock_guard lock(board().mutex);
  number_ = board().next++;
  board().own[number_] = {what, Clock::now()};
}

BusyScope::~BusyScope() {
  const std::lock_guard lock(board().mutex);
  board().own.erase(number_);
}

std::string own_work(double longer_than_seconds) {
  const std::lock_guard lock(board().mutex);
  if (board().own.empty()) return "";
  const OwnWork& first = board().own.begin()->second;
  return seconds_since(first.since) >= longer_than_seconds ? first.what : "";
}

void hear_work(int rank, const std::string& what) {
  const std::lock_guard lock(board().mutex);
  if (what.empty())
    board().of_others.erase(rank);
  else
    board().of_others[rank] = {what, Clock::now()};
  board().others = static_cast<int>(board().of_others.size());
}

bool others_are_busy() { return board().others.load(std::memory_order_relaxed) > 0; }

std::string work_of_others() {
  const std::lock_guard lock(board().mutex);
  std::string text;
  for (const auto& [rank, work] : board().of_others)
    text += fmt::format("{}rank {} has been busy with {} for {:.0f} s", text.empty() ? "" : ", ",
                        rank, work.what, seconds_since(work.since));
  return text;
}

void set_busy_limit(double seconds) { board().limit = seconds; }
double busy_limit() { return board().limit; }

}  // namespace t3d
