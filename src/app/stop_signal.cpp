#include "app/stop_signal.hpp"

#include <unistd.h>

#include <csignal>
#include <ctime>
#include <initializer_list>

namespace t3d {
namespace {

volatile std::sig_atomic_t g_signal = 0;
volatile std::sig_atomic_t g_first_interrupt = 0;  // seconds; only differences matter

extern "C" void note_signal(int number) {
  if (number == SIGINT) {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);  // async-signal-safe by POSIX
    const auto seconds = static_cast<std::sig_atomic_t>(now.tv_sec);
    if (g_signal == SIGINT && seconds - g_first_interrupt <= 2) _exit(128 + SIGINT);
    g_first_interrupt = seconds;
  }
  g_signal = number;
}

}  // namespace

void catch_stop_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGUSR2, SIGHUP}) {
    struct sigaction action {};
    action.sa_handler = note_signal;
    action.sa_flags = SA_RESTART;
    sigaction(number, &action, nullptr);
  }
}

int stop_signal() { return g_signal; }

}  // namespace t3d
