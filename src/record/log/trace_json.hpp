// Traces of all ranks as one JSON file that Perfetto (ui.perfetto.dev) and chrome://tracing open:
// "Trace Event Format", complete events ("ph": "X") in microseconds. A rank is a process there; its
// threads are steps, phases and waits, the checkpoint writer, the streams of its device, and as
// many of messages as there are collectives under way at once, so that spans of one thread nest.
#pragma once
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "core/tracer.hpp"

namespace t3d {

/// How a clock reads beside another at the beginning and the end of the trace: a rank's beside rank
/// 0's, a device's beside its host's.
struct ClockOffset {
  std::int64_t first_time = 0, last_time = 0;      // nanoseconds, of the clock
  std::int64_t first_offset = 0, last_offset = 0;  // it - the other one
  std::int64_t error = 0;                          // at most
  /// A time of the clock as the other one would have it.
  [[nodiscard]] std::int64_t on_the_other(std::int64_t time) const;
};

struct RankTrace {
  std::string host;
  std::vector<TraceSpan> spans;
  std::vector<TraceGroup> groups;
  std::int64_t lost = 0;

  /// For a message; names become texts. `device`: its clock beside the host's, which all spans have
  /// from here on. What belongs to a step behind `last_step`, which is not done, is left out; but
  /// not the phase that ends the last one.
  [[nodiscard]] static std::string packed(const std::string& host, Tracer& tracer,
                                          const ClockOffset& device = {},
                                          index_t last_step = std::numeric_limits<index_t>::max());
  /// Error(io) where it is no such text.
  [[nodiscard]] static RankTrace unpacked(const std::string& text);
};

/// What is said of the whole trace.
struct TraceFacts {
  index_t first_step = 0, last_step = 0;
  std::int64_t start = 0, end = 0;  // of rank 0's clock
  std::vector<ClockOffset> clocks;  // by rank
  /// Largest error of its device's clock beside its host's, in nanoseconds by rank; below 0 where
  /// the host's clock is the device's.
  std::vector<double> device_errors;
  std::string program;  // "transformer3d 0.1 (abc)"
};

/// Text, in the order in which it is to be written.
[[nodiscard]] std::string trace_head(const TraceFacts& facts);
[[nodiscard]] std::string trace_of_rank(int rank, const RankTrace& trace, const TraceFacts& facts);
[[nodiscard]] std::string trace_tail();

}  // namespace t3d
