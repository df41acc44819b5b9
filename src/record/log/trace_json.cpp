#include "record/log/trace_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "core/error.hpp"
#include "io/packer.hpp"

namespace t3d {
namespace {

using TraceJson = nlohmann::ordered_json;
using SpanKind = TraceSpan::Kind;

/// Threads of a rank; each group with a stream of its own takes the one at its place among the
/// groups, and messages those that follow.
constexpr int kSteps = 1, kPhases = 2, kWriter = 3, kStream = 4, kCommunication = 5;

std::string text_of(const TraceJson& json) {
  return json.dump(-1, ' ', false, TraceJson::error_handler_t::replace);
}

/// "0-3,8"
std::string short_list(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  std::string text;
  for (std::size_t at = 0; at < ranks.size();) {
    std::size_t end = at + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ",", ranks[at]);
    if (end - at > 1) text += fmt::format("-{}", ranks[end - 1]);
    at = end;
  }
  return text;
}

std::string named(const char* what, int rank, int thread, const std::string& name) {
  return ",\n" + text_of({{"name", what},
                          {"ph", "M"},
                          {"pid", rank},
                          {"tid", thread},
                          {"args", {{"name", name}}}});
}

std::string ordered(const char* what, int rank, int thread, int place) {
  return ",\n" + text_of({{"name", what},
                          {"ph", "M"},
                          {"pid", rank},
                          {"tid", thread},
                          {"args", {{"sort_index", place}}}});
}

/// The threads of a rank that have spans, by their numbers: their names.
class Threads {
 public:
  explicit Threads(const std::vector<TraceGroup>& groups) : groups_(groups) {}

  int of(const TraceSpan& span) {
    switch (span.kind) {
      case SpanKind::step: return named(kSteps, "steps");
      case SpanKind::phase:
      case SpanKind::wait: return named(kPhases, "phases and waits");
      case SpanKind::writer: return named(kWriter, "checkpoint writer");
      case SpanKind::stream_step:
      case SpanKind::stream: return named(kStream, "compute stream");
      case SpanKind::communication:
        return named(
            kCommunication + span.group,
            "communication stream, axis " + groups_.at(static_cast<std::size_t>(span.group)).axis);
      case SpanKind::collective: break;
    }
    const std::size_t thread = free_thread(span);
    return named(kCommunication + static_cast<int>(groups_.size() + thread),
                 thread == 0 ? "messages" : fmt::format("messages {}", thread + 1));
  }
  [[nodiscard]] const std::map<int, std::string>& names() const { return names_; }

 private:
  int named(int thread, const std::string& name) {
    names_.try_emplace(thread, name);
    return thread;
  }
  /// The first of the threads of messages in which nothing is under way then.
  std::size_t free_thread(const TraceSpan& span) {
    std::size_t thread = 0;
    while (thread < ends_.size() && ends_[thread] > span.start) ++thread;
    if (thread == ends_.size()) ends_.push_back(0);
    ends_[thread] = span.end;
    return thread;
  }

  const std::vector<TraceGroup>& groups_;
  std::map<int, std::string> names_;
  std::vector<std::int64_t> ends_;
};

class RankText {
 public:
  RankText(int rank, const RankTrace& trace, const TraceFacts& facts)
      : rank_(rank), facts_(facts), clock_(facts.clocks[static_cast<std::size_t>(rank)]) {
    for (const TraceGroup& group : trace.groups) {
      const std::string text =
          fmt::format("\"axis\":{},\"ranks\":\"{}\"", text_of(group.axis), short_list(group.ranks));
      const auto alike =
          std::count_if(groups_.begin(), groups_.end(),
                        [&](const std::string& other) { return other.starts_with(text); });
      groups_.push_back(fmt::format("{},\"group\":{}", text, alike));
    }
  }

  void add(const TraceSpan& span, int thread) {
    const std::string name =
        text_of(std::string(span.kind == SpanKind::wait ? "wait " : "") + span.name);
    text_ += fmt::format(
        ",\n{{\"name\":{},\"cat\":\"{}\",\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{},"
        "\"args\":{{\"step\":{}",
        name, category(span.kind), rank_, thread, microseconds(on_rank_0(span.start)),
        microseconds(on_rank_0(span.end) - on_rank_0(span.start)), span.step);
    if (span.group >= 0) {
      text_ += fmt::format(",\"bytes\":{},{},\"number\":{}", span.bytes,
                           groups_.at(static_cast<std::size_t>(span.group)), span.sequence);
    }
    text_ += "}}";
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  [[nodiscard]] std::int64_t on_rank_0(std::int64_t time) const {
    return clock_.on_the_other(time) - facts_.start;
  }
  static std::string microseconds(std::int64_t nanoseconds) {
    const char* sign = nanoseconds < 0 ? "-" : "";
    const std::int64_t size = std::abs(nanoseconds);
    return fmt::format("{}{}.{:03}", sign, size / 1000, size % 1000);
  }
  static const char* category(SpanKind kind) {
    switch (kind) {
      case SpanKind::step: return "step";
      case SpanKind::phase: return "phase";
      case SpanKind::wait: return "wait";
      case SpanKind::collective: return "collective";
      case SpanKind::writer: return "checkpoint";
      case SpanKind::stream_step: return "stream step";
      case SpanKind::stream: return "stream";
      case SpanKind::communication: return "communication";
    }
    return "?";
  }

  int rank_;
  const TraceFacts& facts_;
  const ClockOffset& clock_;
  /// By their numbers; the last part tells those of one axis and the same ranks apart, in the order
  /// of their first collectives, which is that of all their ranks.
  std::vector<std::string> groups_;
  std::string text_;
};

}  // namespace

std::int64_t ClockOffset::on_the_other(std::int64_t time) const {
  if (last_time == first_time) return time - first_offset;
  const double share =
      static_cast<double>(time - first_time) / static_cast<double>(last_time - first_time);
  const double drift = static_cast<double>(last_offset - first_offset);
  return time - first_offset - static_cast<std::int64_t>(share * drift);
}

std::string RankTrace::packed(const std::string& host, Tracer& tracer, const ClockOffset& device,
                              index_t last_step) {
  Packer out;
  out.add(host);
  out.add(tracer.lost());
  out.add(std::ssize(tracer.groups()));
  for (const TraceGroup& group : tracer.groups()) {
    out.add(group.axis);
    out.add(std::ssize(group.ranks));
    for (const int rank : group.ranks) out.add(rank);
  }
  std::vector<TraceSpan> spans = tracer.take_spans();
  for (TraceSpan& span : spans) {
    if (!span.on_device()) continue;
    if (span.end == 0) span.start = span.end = device.last_time;  // nobody knows when
    span.start = device.on_the_other(span.start);
    span.end = device.on_the_other(span.end);
  }
  const auto last = std::find_if(spans.begin(), spans.end(), [&](const TraceSpan& span) {
    return span.kind == SpanKind::step && span.step == last_step;
  });
  if (last != spans.end())
    std::erase_if(spans, [&, end = last->end](const TraceSpan& span) {
      return span.step > last_step && span.start >= end;
    });
  std::map<std::string, index_t> numbers;
  for (const TraceSpan& span : spans) numbers.try_emplace(span.name, std::ssize(numbers));
  out.add(std::ssize(numbers));
  for (const auto& [name, number] : numbers) {
    out.add(name);
    out.add(number);
  }
  out.add(std::ssize(spans));
  for (const TraceSpan& span : spans) {
    out.add(static_cast<index_t>(span.kind));
    for (const index_t value : {index_t{span.group}, span.start, span.end, span.step, span.bytes,
                                span.sequence, numbers.at(span.name)})
      out.add(value);
  }
  return out.take();
}

RankTrace RankTrace::unpacked(const std::string& text) {
  // Spans point at their names, which stay until the program ends: a few dozen.
  static std::set<std::string> names_for_good;
  Unpacker in(text);
  RankTrace trace;
  trace.host = in.text();
  trace.lost = in.number();
  for (index_t groups = in.number(); groups > 0; --groups) {
    TraceGroup& group = trace.groups.emplace_back();
    group.axis = in.text();
    for (index_t ranks = in.number(); ranks > 0; --ranks)
      group.ranks.push_back(static_cast<int>(in.number()));
  }
  std::map<index_t, const char*> names;
  for (index_t count = in.number(); count > 0; --count) {
    const std::string name = in.text();
    names[in.number()] = names_for_good.insert(name).first->c_str();
  }
  for (index_t spans = in.number(); spans > 0; --spans) {
    TraceSpan& span = trace.spans.emplace_back();
    span.kind = static_cast<SpanKind>(in.number());
    span.group = static_cast<std::int32_t>(in.number());
    for (std::int64_t* value : {&span.start, &span.end, &span.step, &span.bytes, &span.sequence})
      *value = in.number();
    span.name = names.at(in.number());
  }
  return trace;
}

std::string trace_head(const TraceFacts& facts) {
  TraceJson offsets = TraceJson::array(), errors = TraceJson::array();
  std::int64_t worst = 0;
  for (const ClockOffset& clock : facts.clocks) {
    offsets.push_back(static_cast<double>(clock.first_offset) / 1e3);
    errors.push_back(static_cast<double>(clock.error) / 1e3);
    worst = std::max(worst, clock.error);
  }
  TraceJson about{
      {"program", facts.program},
      {"steps", {facts.first_step, facts.last_step}},
      {"clock",
       "rank 0's; other ranks' offsets by the shortest of several round trips, before and "
       "after the steps"},
      {"clock_error_us", static_cast<double>(worst) / 1e3},
      {"clock_error_us_by_rank", errors},
      {"clock_offset_us_by_rank", offsets}};
  if (std::any_of(facts.device_errors.begin(), facts.device_errors.end(),
                  [](double error) { return error >= 0; })) {
    TraceJson device_errors = TraceJson::array();
    for (const double error : facts.device_errors)
      device_errors.push_back(error >= 0 ? TraceJson(error / 1e3) : TraceJson());
    about["device_clock"] =
        "beside the clock of its host: the shortest of several waits for the device, before and "
        "after the steps";
    about["device_clock_error_us_by_rank"] = device_errors;
  }
  // An event that says nothing, so that all others can follow a comma.
  return "{\"displayTimeUnit\":\"ms\",\"otherData\":" + text_of(about) +
         ",\"traceEvents\":[\n{\"name\":\"trace\",\"ph\":\"M\",\"pid\":0,\"tid\":0,\"args\":{}}";
}

std::string trace_of_rank(int rank, const RankTrace& trace, const TraceFacts& facts) {
  std::vector<TraceSpan> spans = trace.spans;
  const ClockOffset& clock = facts.clocks[static_cast<std::size_t>(rank)];
  // What has not ended does so with the trace.
  const std::int64_t last = facts.end + clock.last_offset;
  for (TraceSpan& span : spans)
    if (span.end == 0) span.end = std::max(last, span.start);
  std::stable_sort(spans.begin(), spans.end(), [](const TraceSpan& a, const TraceSpan& b) {
    return a.start != b.start ? a.start < b.start : a.end > b.end;
  });
  RankText text(rank, trace, facts);
  Threads threads(trace.groups);
  for (const TraceSpan& span : spans) text.add(span, threads.of(span));
  std::string head =
      named("process_name", rank, 0, fmt::format("rank {} on {}", rank, trace.host)) +
      ordered("process_sort_index", rank, 0, rank);
  for (const auto& [thread, name] : threads.names())
    head += named("thread_name", rank, thread, name) +
            ordered("thread_sort_index", rank, thread, thread);
  if (trace.lost > 0)
    head += ",\n" + text_of({{"name", "spans without room"},
                             {"ph", "M"},
                             {"pid", rank},
                             {"tid", 0},
                             {"args", {{"count", trace.lost}}}});
  return head + text.take();
}

std::string trace_tail() { return "\n]}\n"; }

}  // namespace t3d
