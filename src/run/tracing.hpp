// Tracing: debug.trace. Traces the steps of a window on all ranks, puts their clocks and those of
// their devices beside each other, and has rank 0 write one file.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/tracer.hpp"
#include "record/log/trace_json.hpp"
#include "train/machine.hpp"

namespace t3d {

struct TraceWindow {
  index_t first = 1, last = 1;  // steps
};

/// What is to be told; text may be empty.
struct TraceNews {
  std::string text;
  bool is_warning = false;
};

class Tracing {
 public:
  /// `dir`: of the run; the file is trace.json there, or trace-2.json, ... where there is one.
  Tracing(Machine& machine, const TraceWindow& window, std::string dir);
  ~Tracing();
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;

  /// Collective. `step` is done, and what is sent from now on belongs to the next one. Begins and
  /// ends the trace. What it sends itself is in no ledger.
  [[nodiscard]] TraceNews books_closed(index_t step);
  /// Collective: the run ends now. As books_closed().
  [[nodiscard]] TraceNews end();
  /// Nothing is left to do.
  [[nodiscard]] bool over() const { return over_; }
  /// The trace begins or ends when the books of `step` are closed: no later step may have been
  /// started then, of which it would know a part.
  [[nodiscard]] bool bounded_by(index_t step) const {
    return !over_ && (step + 1 == window_.first || step == window_.last);
  }
  void writing(bool under_way);

 private:
  void begin(index_t step);
  void stop();
  void measure_clocks(bool first);
  void measure_device_clock(bool first);
  [[nodiscard]] TraceNews write(index_t last_step);

  Machine& machine_;
  TraceWindow window_;
  std::string dir_;
  std::unique_ptr<Tracer> tracer_;  // while steps are traced
  std::optional<PhaseClock::Listener> listener_;
  std::optional<ClockOffset> device_clock_;  // where it is not the host's
  TraceFacts facts_;
  std::int64_t step_start_ = 0;
  index_t last_ = 0;  // step that is whole in the trace
  TraceMark writer_;
  bool over_ = false;
};

}  // namespace t3d
