// Traces of all ranks as one JSON file that Perfetto (ui.perfetto.dev) and chrome://tracing open:
// "Trace Event Format", complete events ("ph": "X") in microseconds. A rank is a process there; its
// threads are steps, phases and waits, the checkpoint writer, and as many of messages as there are
// collectives under way at once, so that spans of one thread nest.
#pragma once
#include <cstdio>
#include <string>
#include <vector>

#include "core/tracer.hpp"

namespace t3d {

/// How a rank's clock reads beside rank 0's, at the beginning and the end of the trace.
struct ClockOffset {
  std::int64_t first_time = 0, last_time = 0;      // nanoseconds, of the rank's clock
  std::int64_t first_offset = 0, last_offset = 0;  // its clock - rank 0's
  std::int64_t error = 0;                          // at most
  /// A time of the rank's clock as rank 0's would have it.
  [[nodiscard]] std::int64_t on_rank_0(std::int64_t time) const;
};

struct RankTrace {
  std::string host;
  std::vector<TraceSpan> spans;
  std::vector<TraceGroup> groups;
  std::int64_t lost = 0;

  /// For a message; names become texts.
  [[nodiscard]] static std::string packed(const std::string& host, Tracer& tracer);
  /// Error(io) where it is no such text.
  [[nodiscard]] static RankTrace unpacked(const std::string& text);
};

/// What is said of the whole trace.
struct TraceFacts {
  index_t first_step = 0, last_step = 0;
  std::int64_t start = 0, end = 0;  // of rank 0's clock
  std::vector<ClockOffset> clocks;  // by rank
  std::string program;              // "transformer3d 0.1 (abc)"
};

/// Text, in the order in which it is to be written.
[[nodiscard]] std::string trace_head(const TraceFacts& facts);
[[nodiscard]] std::string trace_of_rank(int rank, const RankTrace& trace, const TraceFacts& facts);
[[nodiscard]] std::string trace_tail();

}  // namespace t3d
