#include "run/tracing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "comm/agree.hpp"
#include "comm/busy.hpp"
#include "core/counted.hpp"
#include "core/error.hpp"
#include "device/host_limits.hpp"
#include "io/posix_file.hpp"
#include "t3d_version.hpp"

namespace t3d {
namespace {

constexpr int kRoundTrips = 16;
constexpr index_t kPieceBytes = index_t{1} << 20, kWord = 8;
/// Room for spans of 64 bytes; a small model has a few hundred a step, a large one some thousands.
constexpr index_t kSpansOfStep = 20'000, kFewestSpans = 1 << 16, kMostSpans = 1 << 20;

/// Collective over `world`: a message between two of its ranks.
void send(Communicator& world, int from, int to, TensorView data) {
  std::vector<Exchange> messages;
  if (world.rank() == from) messages.push_back({to, data, {}});
  if (world.rank() == to) messages.push_back({from, {}, data});
  world.exchange(std::move(messages)).wait_host();
}

struct ClockReading {
  std::int64_t time = 0, offset = 0, error = std::numeric_limits<std::int64_t>::max();
};

/// Collective. On rank 0: how the clock of `rank` reads beside its own. Of several round trips the
/// shortest counts: the answer was written within it, so that half of it is the largest error.
ClockReading read_clock(Communicator& world, int rank) {
  ClockReading best;
  for (int trip = 0; trip < kRoundTrips; ++trip) {
    std::int64_t there = 0;
    const TensorView number(&there, DType::f64, 1, 1);  // 8 bytes
    const std::int64_t asked = Tracer::now();
    send(world, 0, rank, number);
    if (world.rank() == rank) there = Tracer::now();
    send(world, rank, 0, number);
    const std::int64_t answered = Tracer::now(), error = (answered - asked + 1) / 2;
    if (error < best.error) best = {there, there - (asked + answered) / 2, error};
  }
  return best;
}

/// Collective. The text of `rank` on rank 0, in pieces of bounded size.
std::string fetch(Communicator& world, int rank, const std::string& own, index_t bytes) {
  std::string text;
  if (world.rank() == rank) text = own;
  if (rank == 0) return text;
  if (world.rank() == 0) text.resize(static_cast<std::size_t>(bytes));
  for (index_t at = 0; at < bytes; at += kPieceBytes) {
    const index_t now = std::min(kPieceBytes, bytes - at);
    const bool takes_part = world.rank() == rank || world.rank() == 0;
    send(world, rank, 0,
         TensorView(takes_part ? text.data() + at : nullptr, DType::f64, 1, now / kWord));
  }
  return text;
}

std::string free_name(const std::string& dir) {
  std::string path = dir + "/trace.json";
  for (int number = 2; path_exists(path); ++number)
    path = fmt::format("{}/trace-{}.json", dir, number);
  return path;
}

/// A file that is written piece by piece; the first fault is kept, as the ranks go on sending.
class TraceFile {
 public:
  explicit TraceFile(const std::string& dir) {
    try {
      path_ = free_name(dir);
      std::remove((path_ + ".tmp").c_str());  // of a life that was killed
      file_ = open_to_append(path_ + ".tmp");
    } catch (const Error& error) {
      fault_ = error.what();
    }
  }
  void put(const std::string& text) {
    if (!fault_.empty()) return;
    bytes_ += std::ssize(text);
    if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size()) note_fault();
  }
  TraceNews finish() {
    if (fault_.empty() && std::fflush(file_.get()) != 0) note_fault();
    file_.reset();
    try {
      if (fault_.empty()) {
        sync_path(path_ + ".tmp");
        rename_durably(path_ + ".tmp", path_);
      }
    } catch (const Error& error) {
      fault_ = error.what();
    }
    if (fault_.empty())
      return {fmt::format("{}, {}", path_, format_bytes(static_cast<double>(bytes_))), false};
    if (!path_.empty()) std::remove((path_ + ".tmp").c_str());
    return {"not written: " + fault_, true};
  }

 private:
  void note_fault() {
    const int reason = errno;
    fault_ = fmt::format("cannot write {}: {}", path_, std::strerror(reason));
  }

  std::string path_, fault_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  index_t bytes_ = 0;
};

}  // namespace

Tracing::Tracing(Machine& machine, const TraceWindow& window, std::string dir)
    : machine_(machine), window_(window), dir_(std::move(dir)) {}

Tracing::~Tracing() {
  if (tracer_) stop();
}

TraceNews Tracing::books_closed(index_t step) {
  if (over_) return {};
  if (!tracer_) {
    if (step >= window_.last) {
      over_ = true;
      return {fmt::format("trace: steps {} to {} were done before this start", window_.first,
                          window_.last)};
    }
    if (step + 1 >= window_.first) begin(step + 1);
    return {};
  }
  const std::int64_t now = Tracer::now();
  tracer_->add(TraceSpan::Kind::step, "step", step_start_, now);
  step_start_ = now;
  last_ = step;
  tracer_->set_step(step + 1);
  return step >= window_.last ? write(step) : TraceNews();
}

TraceNews Tracing::end() {
  if (over_) return {};
  over_ = true;
  if (!tracer_ || last_ < facts_.first_step)
    return {fmt::format("trace: the run ended before step {} was done",
                        std::max(window_.first, facts_.first_step))};
  return write(last_);
}

void Tracing::writing(bool under_way) {
  if (!tracer_) return;
  if (under_way)
    writer_ = tracer_->begin_writer();
  else
    tracer_->end(std::exchange(writer_, {}));
}

void Tracing::begin(index_t step) {
  const index_t spans = kSpansOfStep * (window_.last - step + 1);
  tracer_ = std::make_unique<Tracer>(
      static_cast<std::size_t>(std::clamp(spans, kFewestSpans, kMostSpans)));
  facts_.first_step = step;
  facts_.program = fmt::format("transformer3d {} ({})", kVersion, kGit);
  measure_clocks(true);
  measure_device_clock(true);
  tracer_->set_step(step);
  facts_.start = step_start_ = Tracer::now();
  Tracer::set_current(tracer_.get());
  listener_.emplace(machine_.clock(),
                    [tracer = tracer_.get()](const char* phase) { tracer->enter(phase); });
}

void Tracing::stop() {
  Tracer::set_current(nullptr);
  listener_.reset();
  machine_.queue().stop_clock();
}

// Nothing is queued any more when it is read for the last time: those who look after collectives
// see now that they are done.
void Tracing::measure_device_clock(bool first) {
  const std::optional<DeviceTime> now = machine_.queue().read_clock();
  if (!now) return;
  machine_.device_world().progress();
  if (first) device_clock_.emplace();
  ClockOffset& clock = *device_clock_;
  (first ? clock.first_time : clock.last_time) = now->device;
  (first ? clock.first_offset : clock.last_offset) = now->device - now->host;
  clock.error = std::max(clock.error, now->error);
}

// Nothing of it belongs to a step.
void Tracing::measure_clocks(bool first) {
  Communicator& world = machine_.world();
  const Ledger before = world.ledger();
  facts_.clocks.resize(static_cast<std::size_t>(world.size()));
  for (int rank = 1; rank < world.size(); ++rank) {
    const ClockReading reading = read_clock(world, rank);
    ClockOffset& clock = facts_.clocks[static_cast<std::size_t>(rank)];
    (first ? clock.first_time : clock.last_time) = reading.time;
    (first ? clock.first_offset : clock.last_offset) = reading.offset;
    clock.error = std::max(clock.error, reading.error);
  }
  world.ledger() = before;
}

TraceNews Tracing::write(index_t last_step) {
  std::optional<BusyScope> busy;  // it writes what the others send
  if (machine_.world().rank() == 0) busy.emplace("writing a trace into " + dir_);
  Communicator& world = machine_.world();
  facts_.end = Tracer::now();
  measure_device_clock(false);
  stop();
  over_ = true;
  facts_.last_step = last_step;
  measure_clocks(false);
  const Ledger before = world.ledger();
  const ClockOffset device = device_clock_.value_or(ClockOffset());
  std::string own = RankTrace::packed(host_name(), *tracer_, device, last_step);
  own.resize((own.size() + kWord - 1) / kWord * kWord);  // sent as numbers of 8 bytes
  tracer_.reset();
  const std::vector<double> sizes = all_gather_numbers(world, static_cast<double>(own.size()));
  const double device_error = device_clock_ ? static_cast<double>(device.error) : -1;
  facts_.device_errors = all_gather_numbers(world, device_error);
  std::unique_ptr<TraceFile> file;
  if (world.rank() == 0) file = std::make_unique<TraceFile>(dir_);
  if (file) file->put(trace_head(facts_));
  std::int64_t lost = 0;
  for (int rank = 0; rank < world.size(); ++rank) {
    const std::string text =
        fetch(world, rank, own, static_cast<index_t>(sizes[static_cast<std::size_t>(rank)]));
    if (!file) continue;
    const RankTrace trace = RankTrace::unpacked(text);
    lost += trace.lost;
    file->put(trace_of_rank(rank, trace, facts_));
  }
  world.ledger() = before;
  if (!file) return {};
  file->put(trace_tail());
  TraceNews news = file->finish();
  const double seconds = static_cast<double>(Tracer::now() - facts_.end) / 1e9;
  news.text = fmt::format("trace of steps {} to {}: {}; collecting it took {:.2f} s",
                          facts_.first_step, facts_.last_step, news.text, seconds);
  if (lost > 0) news.text += "; " + counted(lost, "span") + " had no room";
  return news;
}

}  // namespace t3d
