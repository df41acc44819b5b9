#include "sched/signal_check.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>

#include "comm/agree.hpp"

namespace t3d {
namespace {

const std::set<int> kRaisedByInstructions = {SIGSEGV, SIGBUS,  SIGFPE, SIGILL,
                                             SIGABRT, SIGTRAP, SIGSYS};

// The library or program that holds the code at `address`.
std::string file_of(const void* address) {
  Dl_info info{};
  const bool known = dladdr(address, &info) != 0 && info.dli_fname != nullptr;
  return known ? info.dli_fname : "";
}

const void* code_of(const struct sigaction& action) {
  const void* code = nullptr;  // both kinds of handler lie at the same place
  static_assert(sizeof(code) == sizeof(action.sa_handler));
  std::memcpy(&code, &action.sa_handler, sizeof(code));
  return code;
}

std::string name_of(int number) {
  if (number >= SIGRTMIN) return fmt::format("SIGRTMIN+{}", number - SIGRTMIN);
  const char* text = strsignal(number);
  return text == nullptr ? "?" : text;
}

}  // namespace

std::vector<SignalState> asynchronous_signals() {
  sigset_t blocked;
  sigemptyset(&blocked);
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  std::vector<SignalState> signals;
  for (int number = 1; number <= SIGRTMAX; ++number) {
    struct sigaction action {};
    if (kRaisedByInstructions.count(number) != 0 || sigaction(number, nullptr, &action) != 0)
      continue;  // the C library keeps two signals to itself
    SignalState state;
    state.number = number;
    state.handled = action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
    state.blocked = sigismember(&blocked, number) == 1;
    if (state.handled) state.owner = file_of(code_of(action));
    signals.push_back(state);
  }
  return signals;
}

std::string handler_warning(const std::vector<SignalState>& signals) {
  std::string list;
  for (const SignalState& signal : signals) {
    if (!signal.handled || signal.blocked) continue;
    list += fmt::format("{}{} ({}{}{})", list.empty() ? "" : ", ", signal.number,
                        name_of(signal.number), signal.owner.empty() ? "" : ", handler in ",
                        signal.owner);
  }
  if (list.empty()) return {};
  return fmt::format(
      "signal {} can damage the memory of this training when it arrives inside oneDNN's matmul: "
      "run without the profiler or library that handles it (docs/03-running.md)",
      list);
}

void warn_of_signal_handlers(Communicator& world) {
  std::map<std::string, int> ranks;
  for (const std::string& text : gather_texts(world, handler_warning(asynchronous_signals())))
    if (!text.empty()) ++ranks[text];
  for (const auto& [text, count] : ranks)
    fmt::print(stderr, "transformer3d: warning: {} of {} ranks: {}\n", count, world.size(), text);
}

}  // namespace t3d
