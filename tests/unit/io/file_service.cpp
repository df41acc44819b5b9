// Files that are written for somebody who does not wait for them.
#include "io/file_service.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "support/catch.hpp"

namespace t3d::test {
namespace {

void wait_for(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

TEST_CASE("what is handed over is done in its order, and who hands over does not wait") {
  std::vector<int> done;
  std::atomic<bool> release = false;
  FileService files;
  (void)files.put("a pause", 1, [&] { wait_for(release); });
  for (int number = 0; number < 5; ++number)
    (void)files.put("a number", 1, [&, number] { done.push_back(number); });
  CHECK_FALSE(files.is_done(1));
  release = true;
  CHECK(files.wait(files.newest(), 20));
  CHECK(done == std::vector<int>{0, 1, 2, 3, 4});
}

TEST_CASE("who hands over too much waits, also for what is being done") {
  std::atomic<bool> begun = false;
  FileService files(10);
  (void)files.put("a pause", 8, [&] {
    begun = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  });
  wait_for(begun);
  (void)files.put("more", 8, [] {});
  CHECK(files.is_done(1));
}

TEST_CASE("what hangs at the end is left, and the rest is dropped") {
  const auto begun = std::make_shared<std::atomic<bool>>(false);
  const auto release = std::make_shared<std::atomic<bool>>(false);
  const auto dropped = std::make_shared<std::atomic<bool>>(true);
  FileService files(10);
  (void)files.put("a hang", 1, [begun, release] {
    *begun = true;
    wait_for(*release);
  });
  (void)files.put("the rest", 1, [dropped] { *dropped = false; });
  wait_for(*begun);
  CHECK_FALSE(files.wait(files.newest(), 0.1));
  CHECK(files.what() == "a hang");
  CHECK(files.end(0.1) == 2);
  *release = true;
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  CHECK(*dropped);
}

TEST_CASE("a long work that comes forward is waited for") {
  FileService files(10);
  files.set_standstill(1);
  CHECK(files.put("a long work", 8, [] {
    for (int piece = 0; piece < 20; ++piece) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      FileService::note_progress();
    }
  }));
  CHECK(files.put("has no room meanwhile", 8, [] {}));
  FileService::note_progress();  // nobody's
}

TEST_CASE("where nothing gets done for long, what has no room is refused until something is done") {
  const auto release = std::make_shared<std::atomic<bool>>(false);
  FileService files(10);
  files.set_standstill(0.2);
  CHECK(files.put("a hang", 8, [release] { wait_for(*release); }));
  CHECK(files.put("fits", 2, [] {}));
  const auto start = std::chrono::steady_clock::now();
  CHECK_FALSE(files.put("does not fit", 8, [] {}));
  const auto waited = std::chrono::steady_clock::now() - start;
  CHECK(waited >= std::chrono::milliseconds(100));
  CHECK(waited < std::chrono::seconds(10));
  *release = true;
  CHECK(files.wait(files.newest(), 20));
  CHECK(files.put("fits again", 8, [] {}));
}

}  // namespace t3d::test
