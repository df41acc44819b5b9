#include "comm/engine.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "comm/busy.hpp"
#include "comm/idle_clock.hpp"

namespace t3d {
namespace {

using Clock = std::chrono::steady_clock;

// How long a waiting rank polls before it offers its core to others: an answer that is near comes
// within microseconds. Where ranks share cores, whoever it waits for may need the core. Where it
// has a core of its own, the core's other users would keep it for milliseconds.
constexpr int kSpins = 64;
constexpr double kPatience = 1e-3;
// Then it sleeps, so that whoever needs the core has it: a sixteenth of the time that it has waited
// without progress, at most this long. The answer is late by a sixteenth of the wait at most.
constexpr double kLongestSleep = 0.2e-3, kShortestSleep = 30e-6;
constexpr double kSleepShare = 1.0 / 16;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Offers the core to others after `idle` seconds without progress.
void give_way(double idle) {
  const double sleep = std::min(kLongestSleep, kSleepShare * idle);
  if (sleep < kShortestSleep)
    sched_yield();
  else
    std::this_thread::sleep_for(std::chrono::duration<double>(sleep));
}

}  // namespace

class Engine::InFlight final : public Work::Impl {
 public:
  InFlight(std::shared_ptr<Engine> engine, std::unique_ptr<Operation> operation, Verb verb,
           const std::string& axis, int context, index_t number, TraceMark traced)
      : engine_(std::move(engine)),
        operation_(std::move(operation)),
        verb_(verb),
        axis_(axis),
        context_(context),
        number_(number),
        traced_(traced),
        large_(operation_->traffic().bytes > kLargeBytes) {
    engine_->in_flight_.push_back(this);
  }
  ~InFlight() override {
    if (finished_) return;
    end_turn();
    engine_->leave(*this);
    if (engine_->failure_.empty())
      engine_->failure_ = fmt::format("{} on {} was abandoned by an error", name_of(verb_), axis_);
  }
  bool test() override {
    if (finished_) return true;
    engine_->progress();
    engine_->check();
    return finished_;
  }
  void wait() override {
    if (!finished_) engine_->wait(*this);
  }

  bool advance() {
    if (!begun_ && !begin_turn()) return false;
    finished_ = operation_->advance();
    if (finished_) {
      end_turn();
      engine_->trace_.finish(number_);
      if (Tracer* tracer = Tracer::current()) tracer->end(traced_);
      ++engine_->operations_done_;
      operation_.reset();
    }
    return finished_;
  }
  [[nodiscard]] bool finished() const { return finished_; }
  [[nodiscard]] bool begun() const { return begun_; }
  [[nodiscard]] int context() const { return context_; }
  [[nodiscard]] Verb verb() const { return verb_; }
  [[nodiscard]] const std::string& axis() const { return axis_; }
  [[nodiscard]] index_t number() const { return number_; }
  [[nodiscard]] const TraceMark& traced() const { return traced_; }
  [[nodiscard]] const Operation& operation() const { return *operation_; }

 private:
  [[nodiscard]] int& large_under_way() const {
    return engine_->large_under_way_[static_cast<std::size_t>(context_)];
  }
  bool begin_turn() {
    begun_ = !large_ || large_under_way() < kTurns;
    if (begun_ && large_) ++large_under_way();
    return begun_;
  }
  void end_turn() {
    if (begun_ && large_) --large_under_way();
  }

  std::shared_ptr<Engine> engine_;
  std::unique_ptr<Operation> operation_;
  Verb verb_;
  std::string axis_;
  int context_;
  index_t number_;
  TraceMark traced_;
  bool large_, begun_ = false, finished_ = false;
};

// A call of the communicator by an emulated slower rank: what it computed before is paid first.
class Engine::Slower {
 public:
  explicit Slower(Engine& engine) : engine_(engine.dilation_.on() ? &engine : nullptr) {
    if (engine_ != nullptr)
      engine_->dilation_.pay([this] { return engine_->progress_in_flight(); });
  }
  Slower(const Slower&) = delete;
  Slower& operator=(const Slower&) = delete;
  ~Slower() {
    if (engine_ != nullptr) engine_->dilation_.resume();
  }

 private:
  Engine* engine_;
};

// Sleeps shall end when they are due, not up to 50 us later.
Engine::Engine(std::unique_ptr<Transport> transport)
    : transport_(std::move(transport)),
      patience_seconds_(transport_->ranks_here() > transport_->cores_here() ? 0 : kPatience) {
  constexpr unsigned long kSlackNanoseconds = 1000;
  prctl(PR_SET_TIMERSLACK, kSlackNanoseconds, 0, 0, 0);
}

Work Engine::start(std::unique_ptr<Operation> operation, Verb verb, const std::string& axis,
                   int context, bool counted) {
  check();
  const Slower slower(*this);
  const auto [bytes, messages] = operation->traffic();
  if (counted) ledger_.count(verb, axis, bytes, messages);
  const index_t number = trace_.add(verb, axis, bytes);
  Tracer* const tracer = counted && context >= 0 ? Tracer::current() : nullptr;
  TraceMark traced;
  if (tracer != nullptr) traced = trace_start(*tracer, verb, axis, context, bytes);
  if (bytes <= kLargeBytes && operation->advance()) {
    trace_.finish(number);
    if (tracer != nullptr) tracer->end(traced);
    return Work();
  }
  auto work = std::make_unique<InFlight>(shared_from_this(), std::move(operation), verb, axis,
                                         context, number, traced);
  if (work->advance()) in_flight_.pop_back();
  return Work(std::move(work));
}

void Engine::progress() noexcept {
  if (!dilation_.on()) {
    (void)progress_in_flight();
    return;
  }
  const auto start = Clock::now();
  const double before = thread_cpu_seconds();
  (void)progress_in_flight();
  dilation_.exclude(seconds_since(start), thread_cpu_seconds() - before);
  if (dilation_.due()) dilation_.pay([this] { return progress_in_flight(); });
}

bool Engine::progress_in_flight() noexcept {
  if (in_flight_.empty() || !failure_.empty()) return false;
  try {
    advance();
  } catch (const Error& error) {
    failure_ = error.what();
    failure_code_ = error.code();
  } catch (const std::exception& error) {
    failure_ = error.what();
    failure_code_ = ExitCode::internal;
  }
  return !in_flight_.empty();
}

void Engine::check() const {
  if (!failure_.empty()) throw Error(failure_code_, failure_);
}

void Engine::advance() {
  transport_->poll();
  const auto end = std::remove_if(in_flight_.begin(), in_flight_.end(),
                                  [](InFlight* work) { return work->advance(); });
  in_flight_.erase(end, in_flight_.end());
}

void Engine::wait(InFlight& work) {
  const Slower slower(*this);
  const auto start = Clock::now();
  const double cpu_before = thread_cpu_seconds();
  const double limit = limit_of(work);
  IdleClock idle_clock(start);
  index_t seen = progress_made();
  for (int turn = 0; !work.finished(); ++turn) {
    (void)progress_in_flight();
    check();
    if (turn < kSpins || work.finished()) continue;
    const auto now = Clock::now();
    if (progress_made() != seen) idle_clock.progress(now);
    seen = progress_made();
    (void)idle_clock.look(now);
    if (others_are_busy()) idle_clock.excuse(busy_limit());
    const double idle = idle_clock.whole();
    if (limit > 0 && idle_clock.idle() > limit) give_up(work, seconds_since(start), idle);
    if (idle >= patience_seconds_) give_way(idle);
  }
  wait_seconds_[work.axis()] += seconds_since(start);
  wait_cpu_seconds_ += thread_cpu_seconds() - cpu_before;
  if (Tracer* tracer = Tracer::current()) tracer->waited(work.traced(), Tracer::nanoseconds(start));
}

TraceMark Engine::trace_start(Tracer& tracer, Verb verb, const std::string& axis, int context,
                              index_t bytes) {
  const auto at = static_cast<std::size_t>(context);
  const int group = tracer.number_of(traced_groups_[at], axis, *members_[at]);
  return tracer.begin(group, name_of(verb).data(), bytes);
}

void Engine::adopt_members(int context, const std::vector<int>& members) {
  members_[static_cast<std::size_t>(context)] = &members;
  traced_groups_[static_cast<std::size_t>(context)] = {};
}

void Engine::adopt_limit(int context, const std::string& axis) {
  const auto found = limit_of_axis_.find(axis);
  auto& limit = limit_of_context_[static_cast<std::size_t>(context)];
  limit = found == limit_of_axis_.end() ? std::nullopt : std::optional(found->second);
}

double Engine::limit_of(const InFlight& work) const {
  const bool numbered = work.context() >= 0;
  return numbered ? limit_of_context_[static_cast<std::size_t>(work.context())].value_or(
                        watchdog_seconds_)
                  : watchdog_seconds_;
}

void Engine::leave(const InFlight& work) {
  in_flight_.erase(std::remove(in_flight_.begin(), in_flight_.end(), &work), in_flight_.end());
}

// What has not begun waits for those before it, and so for whom they miss.
const Engine::InFlight& Engine::first_in_turn(const InFlight& work) const {
  for (const InFlight* other : in_flight_)
    if (!work.begun() && other->context() == work.context()) return *other;
  return work;
}

void Engine::give_up(const InFlight& work, double seconds, double idle_seconds) {
  std::set<int> peers;
  first_in_turn(work).operation().missing(peers);
  failure_ = fmt::format(
      "rank {} has waited {:.1f} s for {} on axis {} (operation #{}, {} bytes to send), the last "
      "{:.1f} s without any message; missing: world rank{} {}. Operations of this rank: {}",
      transport_->rank(), seconds, name_of(work.verb()), work.axis(), work.number(),
      work.operation().traffic().bytes, idle_seconds, peers.size() == 1 ? "" : "s",
      fmt::join(peers, ", "), trace_.text());
  if (const std::string busy = work_of_others(); !busy.empty()) failure_ += "; " + busy;
  throw Error(ExitCode::peer_lost, failure_);
}

}  // namespace t3d
