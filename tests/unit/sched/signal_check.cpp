// Which signal handlers a training warns of: those that can run while oneDNN's stack pointer points
// into the heap.
#include "sched/signal_check.hpp"

#include <csignal>

#include "sched/stop_signal.hpp"
#include "support/catch.hpp"

namespace t3d {
namespace {

void handler(int) {}

// The handler of one signal for as long as this lives.
class Handler {
 public:
  Handler(int number, int flags) : number_(number) {
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = flags;
    sigaction(number, &action, &before_);
  }
  ~Handler() { sigaction(number_, &before_, nullptr); }
  Handler(const Handler&) = delete;
  Handler& operator=(const Handler&) = delete;

 private:
  int number_;
  struct sigaction before_ {};
};

// As the program does first: Catch2 has handlers of its own for INT and TERM.
std::string warning() {
  block_stop_signals();
  const std::string text = handler_warning(asynchronous_signals());
  unblock_stop_signals();
  return text;
}

}  // namespace

TEST_CASE("Handlers of asynchronous signals are named") {
  REQUIRE(warning().empty());
  {
    const Handler profiler(SIGPROF, 0);
    CHECK(warning().find(std::to_string(SIGPROF)) != std::string::npos);
    CHECK(warning().find("t3d_unit_tests") != std::string::npos);  // whose handler it is
    const Handler tracer(SIGRTMIN + 3, SA_SIGINFO);
    CHECK(warning().find("SIGRTMIN+3") != std::string::npos);
  }
  CHECK(warning().empty());
}

TEST_CASE("Handlers that cannot write into the heap are not named") {
  const Handler fault(SIGSEGV, 0);  // raised by an instruction, as Open MPI's
  CHECK(warning().empty());

  const Handler alarm(SIGALRM, 0);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  CHECK(warning().empty());
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  CHECK(!warning().empty());
}

TEST_CASE("An alternate stack of this thread is no protection of the others") {
  const Handler alarm(SIGALRM, SA_ONSTACK);
  std::vector<char> memory(65536);
  stack_t before{}, own{};
  own.ss_sp = memory.data();
  own.ss_size = memory.size();
  sigaltstack(&own, &before);
  CHECK(!warning().empty());
  sigaltstack(&before, nullptr);
}

}  // namespace t3d
