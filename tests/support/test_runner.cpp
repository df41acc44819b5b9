#define CATCH_CONFIG_RUNNER
#include "support/test_runner.hpp"

#include <fmt/core.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "support/catch.hpp"

namespace t3d::test {
namespace {

using Clock = std::chrono::steady_clock;

std::mutex running_mutex;
std::string running_name;
Clock::time_point running_since;

#ifdef T3D_CATCH2_V3
using ListenerBase = Catch::EventListenerBase;
#else
using ListenerBase = Catch::TestEventListenerBase;
#endif

class Stopwatch : public ListenerBase {
 public:
  using ListenerBase::ListenerBase;
  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    const std::lock_guard lock(running_mutex);
    running_name = info.name;
    running_since = Clock::now();
  }
  void testCaseEnded(const Catch::TestCaseStats&) override {
    const std::lock_guard lock(running_mutex);
    running_name.clear();
  }
};
CATCH_REGISTER_LISTENER(Stopwatch)

double allowed_seconds() {
  const char* text = std::getenv("T3D_TEST_SECONDS");
  return text != nullptr ? std::strtod(text, nullptr) : 120.0;
}

class Watchdog {
 public:
  explicit Watchdog(std::function<void(const std::string&)> on_timeout)
      : on_timeout_(std::move(on_timeout)), thread_([this] { watch(); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(running_mutex);
      stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void watch() {
    const std::chrono::duration<double> allowed(allowed_seconds());
    std::unique_lock lock(running_mutex);
    while (!stop_) {
      wake_.wait_for(lock, std::chrono::milliseconds(200));
      if (running_name.empty() || Clock::now() - running_since < allowed) continue;
      on_timeout_(
          fmt::format("test \"{}\" is still running after {} s", running_name, allowed.count()));
      running_name.clear();
    }
  }

  std::function<void(const std::string&)> on_timeout_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace

int run_tests(int argc, char** argv, const std::function<void(const std::string&)>& on_timeout) {
  const Watchdog watchdog(on_timeout);
  return Catch::Session().run(argc, argv);
}

int run_tests(int argc, char** argv) {
  return run_tests(argc, argv, [](const std::string& text) {
    std::fprintf(stderr, "%s\n", text.c_str());
    std::_Exit(1);
  });
}

}  // namespace t3d::test
