#include "block.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <boost/context/detail/fcontext.hpp>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>

namespace t3d::emulation {
namespace {

namespace context = boost::context::detail;

constexpr std::size_t kStack = std::size_t{128} << 10;
constexpr unsigned kMaxThreads = 1024, kLanes = 32;
constexpr std::size_t kMaxShared = std::size_t{256} << 10;

enum class Wait { none, block, warp, ended };

/// Lanes that meet under one mask. Two buffers: a lane can be at most one meeting ahead.
struct Meeting {
  std::uint32_t mask = 0, arrived = 0;
  unsigned generation = 0;
  std::array<Gathered, 2> data;
};

struct Fiber {
  context::fcontext_t state = nullptr;
  Wait wait = Wait::ended;
  Place place;
  AsyncCopies copies;
  Meeting* meeting = nullptr;
  unsigned generation = 0;  // of the meeting that it waits for
};

std::byte* map_with_guard(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* data = mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  auto* start = static_cast<std::byte*>(data);
  mprotect(start + bytes, page, PROT_NONE);
  return start;
}

/// The machinery of one host thread; made at its first launch.
class Multiprocessor {
 public:
  Multiprocessor()
      : stacks_(map_with_guard(kStack * kMaxThreads)), shared_(map_with_guard(kMaxShared)) {
    if (const char* seed = std::getenv("T3D_EMULATION_SEED"))
      seed_ = std::strtoul(seed, nullptr, 10);
  }
  ~Multiprocessor() {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    munmap(stacks_, kStack * kMaxThreads + page);
    munmap(shared_, kMaxShared + page);
  }
  Multiprocessor(const Multiprocessor&) = delete;
  Multiprocessor& operator=(const Multiprocessor&) = delete;

  void run(const Launch& launch, const std::function<void()>& body) {
    launch_ = &launch;
    body_ = &body;
    for (unsigned z = 0; z < launch.grid.z; ++z)
      for (unsigned y = 0; y < launch.grid.y; ++y)
        for (unsigned x = 0; x < launch.grid.x; ++x) run_block({x, y, z});
  }

  Fiber& now() { return *now_; }
  std::byte* shared() const {
    return shared_ + kMaxShared - (launch_->shared_bytes + 127) / 128 * 128;
  }

  int barrier(int value) {
    Fiber& self = *now_;
    sum_ += value;
    ++at_barrier_;
    self.wait = Wait::block;
    release_barrier();
    leave();
    return last_sum_;
  }

  const Gathered& gather(std::uint32_t mask, const void* own, std::size_t bytes, Finish finish) {
    Fiber& self = *now_;
    const unsigned lane = self.place.lane;
    if ((mask >> lane & 1U) == 0) fail("a lane is not in its own mask");
    Meeting& meeting = meeting_of(warp_of(self), mask);
    Gathered& data = meeting.data[meeting.generation % 2];
    std::memcpy(data.lane[lane].data(), own, bytes);
    meeting.arrived |= 1U << lane;
    if (meeting.arrived == mask) {
      if (finish != nullptr) finish(data);
      meeting.arrived = 0;
      const unsigned generation = meeting.generation++;
      for (Fiber& other : warp(warp_of(self)))
        if (other.wait == Wait::warp && other.meeting == &meeting && other.generation == generation)
          other.wait = Wait::none;
    } else {
      self.wait = Wait::warp;
      self.meeting = &meeting;
      self.generation = meeting.generation;
      leave();
    }
    return data;
  }

  [[noreturn]] void end_with(const std::string& text) {
    error_ = text;
    aborted_ = true;
    leave();
    std::abort();  // an aborted fiber is never resumed
  }

 private:
  static unsigned warp_of(const Fiber& fiber) {
    return static_cast<unsigned>(&fiber - thread_base()) / kLanes;
  }
  static Fiber*& thread_base() {
    static thread_local Fiber* base = nullptr;
    return base;
  }
  std::vector<Fiber>& warp_storage() { return fibers_; }
  struct Span {
    Fiber* first;
    Fiber* last;
    Fiber* begin() const { return first; }
    Fiber* end() const { return last; }
  };
  Span warp(unsigned number) {
    Fiber* first = fibers_.data() + number * kLanes;
    return {first, first + std::min<std::size_t>(kLanes, threads_ - number * kLanes)};
  }
  Meeting& meeting_of(unsigned warp, std::uint32_t mask) {
    auto& list = meetings_[warp];
    for (const auto& meeting : list)
      if (meeting->mask == mask) return *meeting;
    list.push_back(std::make_unique<Meeting>());
    list.back()->mask = mask;
    return *list.back();
  }

  void run_block(Index3 block) {
    const Index3 shape = launch_->block;
    threads_ = std::size_t{shape.x} * shape.y * shape.z;
    fibers_.resize(threads_);
    thread_base() = fibers_.data();
    meetings_.resize((threads_ + kLanes - 1) / kLanes);
    for (auto& list : meetings_) list.clear();
    std::memset(shared(), 0xFF, static_cast<std::size_t>(shared_ + kMaxShared - shared()));
    alive_ = threads_;
    at_barrier_ = 0;
    sum_ = 0;
    aborted_ = false;
    error_.clear();
    for (std::size_t t = 0; t < threads_; ++t) {
      Fiber& fiber = fibers_[t];
      const auto linear = static_cast<unsigned>(t);
      fiber.place = {{linear % shape.x, linear / shape.x % shape.y, linear / shape.x / shape.y},
                     block,
                     launch_,
                     linear % kLanes};
      fiber.copies.groups.clear();
      fiber.copies.open.clear();
      fiber.wait = Wait::none;
      fiber.state = context::make_fcontext(stacks_ + (t + 1) * kStack, kStack, enter);
    }
    while (alive_ > 0 && !aborted_) turn();
    if (aborted_)
      throw std::runtime_error(std::string(launch_->name) + " block (" + std::to_string(block.x) +
                               "," + std::to_string(block.y) + "," + std::to_string(block.z) +
                               ") thread " + std::to_string(now_ - fibers_.data()) + ": " + error_);
  }

  // Every warp once, in an order that changes from turn to turn where a seed is given.
  void turn() {
    bool moved = false;
    const std::size_t warps = meetings_.size();
    const std::size_t first = seed_ == 0 ? 0 : (seed_ = seed_ * 6364136223846793005U + 1) >> 33;
    for (std::size_t w = 0; w < warps && !aborted_; ++w)
      for (Fiber& fiber : warp(static_cast<unsigned>((w + first) % warps))) {
        if (fiber.wait != Wait::none) continue;
        moved = true;
        resume(fiber);
        if (aborted_) return;
      }
    if (!moved) report_deadlock();
  }

  void resume(Fiber& fiber) {
    now_ = &fiber;
    current_place = &fiber.place;
    const context::transfer_t back = context::jump_fcontext(fiber.state, this);
    fiber.state = back.fctx;
    if (fiber.wait == Wait::ended) {
      --alive_;
      release_barrier();
    }
  }
  void leave() { scheduler_ = context::jump_fcontext(scheduler_, nullptr).fctx; }

  static void enter(context::transfer_t from) {
    auto& self = *static_cast<Multiprocessor*>(from.data);
    self.scheduler_ = from.fctx;
    try {
      (*self.body_)();
    } catch (const std::exception& error) {
      self.error_ = error.what();
      self.aborted_ = true;
    }
    self.now_->wait = Wait::ended;
    self.leave();
  }

  void release_barrier() {
    if (alive_ == 0 || at_barrier_ < alive_) return;
    at_barrier_ = 0;
    last_sum_ = sum_;
    sum_ = 0;
    for (Fiber& fiber : fibers_)
      if (fiber.wait == Wait::block) fiber.wait = Wait::none;
  }

  void report_deadlock() {
    std::string text = "deadlock:";
    std::size_t at_block = 0, at_warp = 0;
    for (const Fiber& fiber : fibers_) {
      at_block += fiber.wait == Wait::block ? 1 : 0;
      at_warp += fiber.wait == Wait::warp ? 1 : 0;
    }
    text += " " + std::to_string(at_block) + " threads wait at __syncthreads, " +
            std::to_string(at_warp) + " in a warp collective, " +
            std::to_string(threads_ - at_block - at_warp) + " have ended";
    for (const Fiber& fiber : fibers_)
      if (fiber.wait == Wait::warp) {
        text += "; warp " + std::to_string(warp_of(fiber)) + " lacks lanes " +
                std::to_string(fiber.meeting->mask & ~fiber.meeting->arrived) + " (mask)";
        break;
      }
    error_ = text;
    aborted_ = true;
  }

  std::byte* stacks_;
  std::byte* shared_;
  const Launch* launch_ = nullptr;
  const std::function<void()>* body_ = nullptr;
  std::vector<Fiber> fibers_;
  std::vector<std::vector<std::unique_ptr<Meeting>>> meetings_;  // by warp
  std::size_t threads_ = 0, alive_ = 0, at_barrier_ = 0;
  int sum_ = 0, last_sum_ = 0;
  Fiber* now_ = nullptr;
  context::fcontext_t scheduler_ = nullptr;
  bool aborted_ = false;
  std::string error_;
  std::uint64_t seed_ = 0;
};

Multiprocessor& multiprocessor() {
  static thread_local Multiprocessor own;
  return own;
}

}  // namespace

thread_local const Place* current_place = nullptr;

void run_grid(const Launch& launch, const std::function<void()>& body) {
  multiprocessor().run(launch, body);
}

std::byte* dynamic_shared() { return multiprocessor().shared(); }
int barrier(int value) { return multiprocessor().barrier(value); }
const Gathered& gather(std::uint32_t mask, const void* own, std::size_t bytes, Finish finish) {
  return multiprocessor().gather(mask, own, bytes, finish);
}
AsyncCopies& async_copies() { return multiprocessor().now().copies; }
void fail(const std::string& text) { multiprocessor().end_with(text); }

void AsyncCopies::wait(std::size_t pending) {
  while (groups.size() > pending) {
    for (const AsyncCopy& copy : groups.front())
      std::memcpy(copy.to, copy.data.data(), static_cast<std::size_t>(copy.bytes));
    groups.erase(groups.begin());
  }
}

}  // namespace t3d::emulation
