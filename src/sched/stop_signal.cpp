#include "sched/stop_signal.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <thread>
#include <utility>

namespace t3d {
namespace {

std::atomic<int> g_signal{0};
std::mutex g_mutex;  // of the two below
std::function<void(int)> g_answer;
bool g_answered = false;
void (*g_pipe_action)(int) = SIG_DFL;  // of the program that started this one

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP}) sigaddset(&set, number);
  return set;
}

// One that the parent had ignored (nohup) is meant to be. While it is blocked it comes
// nevertheless.
bool ignored(int number) {
  struct sigaction action {};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

/// The next one that is not ignored.
int next_signal() {
  const sigset_t set = stop_signals();
  int number = 0;
  while (sigwait(&set, &number) != 0 || ignored(number)) {
  }
  return number;
}

void answer_once() {
  const std::lock_guard lock(g_mutex);
  if (g_signal == 0 || !g_answer || g_answered) return;
  g_answered = true;
  g_answer(g_signal);
}

void wait_for_signals() {
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_interrupt{};
  while (true) {
    const int number = next_signal();
    if (number == SIGINT) {
      const Clock::time_point now = Clock::now();
      if (g_signal != 0 && now - last_interrupt < std::chrono::seconds(2)) _exit(128 + SIGINT);
      last_interrupt = now;
    }
    if (g_signal != SIGINT) g_signal = number;  // the user's own wish to stop stays
    answer_once();
  }
}

}  // namespace

void block_stop_signals() {
  const sigset_t set = stop_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  g_pipe_action = std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

void restore_pipe_signal() { std::signal(SIGPIPE, g_pipe_action); }

void unblock_stop_signals() {
  const sigset_t set = stop_signals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  restore_pipe_signal();
}

void die_of_stop_signals(void (*clean_up)()) {
  block_stop_signals();
  std::thread([clean_up] {
    const int number = next_signal();
    clean_up();
    std::signal(number, SIG_DFL);
    unblock_stop_signals();
    raise(number);
  }).detach();
}

int wait_for_stop_signal(std::chrono::milliseconds limit) {
  const sigset_t set = stop_signals();
  const timespec time{limit.count() / 1000, 1'000'000 * (limit.count() % 1000)};
  const int number = sigtimedwait(&set, nullptr, &time);
  return number > 0 && !ignored(number) ? number : 0;
}

void catch_stop_signals() { std::thread(wait_for_signals).detach(); }

void answer_stop_signals(std::function<void(int)> answer) {
  {
    const std::lock_guard lock(g_mutex);
    g_answer = std::move(answer);
  }
  answer_once();
}

int stop_signal() { return g_signal; }

}  // namespace t3d
