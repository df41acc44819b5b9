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

void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(200)); }

}  // namespace

TEST_CASE("what is handed over is done in its order, and who hands over does not wait") {
  std::vector<int> done;
  FileService files;
  const auto start = std::chrono::steady_clock::now();
  (void)files.put("a pause", 1, pause);
  for (int number = 0; number < 5; ++number)
    (void)files.put("a number", 1, [&, number] { done.push_back(number); });
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::milliseconds(150));
  CHECK_FALSE(files.is_done(files.newest()));
  CHECK(files.wait(files.newest(), 20));
  CHECK(done == std::vector<int>{0, 1, 2, 3, 4});
}

TEST_CASE("who hands over too much waits; what hangs at the end is left, and the rest is dropped") {
  const auto release = std::make_shared<std::atomic<bool>>(false);
  const auto dropped = std::make_shared<std::atomic<bool>>(true);
  FileService files(10);
  (void)files.put("a pause", 8, pause);
  (void)files.put("more", 8, [] {});
  CHECK(files.is_done(1));
  (void)files.put("a hang", 1, [release] {
    while (!*release) std::this_thread::yield();
  });
  (void)files.put("the rest", 1, [dropped] { *dropped = false; });
  CHECK_FALSE(files.wait(files.newest(), 0.1));
  CHECK(files.what() == "a hang");
  CHECK(files.end(0.1) == 2);
  *release = true;
  pause();
  CHECK(*dropped);
}

TEST_CASE("where nothing gets done for long, what has no room is refused until something is done") {
  const auto release = std::make_shared<std::atomic<bool>>(false);
  FileService files(10);
  files.set_standstill(0.2);
  CHECK(files.put("a hang", 8, [release] {
    while (!*release) std::this_thread::yield();
  }));
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
