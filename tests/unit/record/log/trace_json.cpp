// Traces as text: clocks, threads of messages, names, what did not end.
#include "record/log/trace_json.hpp"

#include <map>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "support/catch.hpp"

namespace t3d {
namespace {

using Kind = TraceSpan::Kind;

TraceFacts facts_of(const ClockOffset& clock) {
  TraceFacts facts;
  facts.first_step = facts.last_step = 7;
  facts.start = 1000;
  facts.end = 9000;
  facts.clocks = {clock};
  return facts;
}

nlohmann::json parsed(const RankTrace& trace, const TraceFacts& facts) {
  return nlohmann::json::parse(trace_head(facts) + trace_of_rank(0, trace, facts) + trace_tail());
}

std::vector<nlohmann::json> spans_of(const nlohmann::json& trace) {
  std::vector<nlohmann::json> spans;
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == "X") spans.push_back(event);
  return spans;
}

RankTrace sent(Tracer& tracer) {
  return RankTrace::unpacked(RankTrace::packed("node\"1\"", tracer));
}

}  // namespace

TEST_CASE("times of another clock are those of rank 0's, also where clocks drift apart") {
  const ClockOffset same{100, 200, 0, 0, 1}, ahead{100, 200, 50, 50, 1},
      drifts{100, 200, 50, 70, 1};
  CHECK(same.on_the_other(150) == 150);
  CHECK(ahead.on_the_other(150) == 100);
  CHECK(drifts.on_the_other(100) == 50);
  CHECK(drifts.on_the_other(150) == 90);
  CHECK(drifts.on_the_other(200) == 130);
  CHECK(ClockOffset{}.on_the_other(5) == 5);
}

TEST_CASE("collectives that are under way at once have threads of their own") {
  Tracer tracer(16);
  tracer.set_step(7);
  const int group = tracer.add_group("k", {3, 1, 2, 8});
  const TraceMark first = tracer.begin(group, "all_gather", 100);
  const TraceMark second = tracer.begin(group, "reduce_scatter", 20);
  tracer.end(first);
  tracer.end(second);
  const TraceMark third = tracer.begin(group, "all_reduce", 3);
  tracer.waited(third, Tracer::now());
  tracer.end(third);
  const nlohmann::json trace = parsed(sent(tracer), facts_of({}));
  const auto spans = spans_of(trace);
  REQUIRE(spans.size() == 4);
  CHECK(spans[0]["tid"] != spans[1]["tid"]);
  CHECK(spans[2]["tid"] == spans[0]["tid"]);
  CHECK(spans[3]["name"] == "wait all_reduce");
  CHECK(spans[3]["args"] == spans[2]["args"]);
  CHECK(spans[2]["args"] == nlohmann::json{{"step", 7},
                                           {"axis", "k"},
                                           {"bytes", 3},
                                           {"ranks", "1-3,8"},
                                           {"group", 0},
                                           {"number", 2}});
}

TEST_CASE("phases follow each other; a second belongs to one") {
  Tracer tracer(16);
  for (const char* phase : {"matmul", "reduce \"x\"", "matmul", ""}) tracer.enter(phase);
  const auto spans = spans_of(parsed(sent(tracer), facts_of({})));
  REQUIRE(spans.size() == 3);
  CHECK(spans[1]["name"] == "reduce \"x\"");
  CHECK(spans[0]["ts"].get<double>() + spans[0]["dur"].get<double>() ==
        Approx(spans[1]["ts"].get<double>()));
}

TEST_CASE("spans of a device have the host's time and threads of their streams") {
  Tracer tracer(16);
  tracer.set_step(7);
  const int group = tracer.add_group("k", {0, 1});
  const TraceMark sent_first = tracer.submit(group, "all_gather", 100);
  const TraceMark unknown = tracer.submit(group, "all_reduce", 3);
  tracer.landed(sent_first, 2020, 3030);
  tracer.landed({}, 5, 6);
  tracer.add_on_device(Kind::stream_step, "step", 1010, 4040, 7);
  tracer.add_on_device(Kind::stream, "matmul", 1010, 4040, 7);
  tracer.add(Kind::step, "step", 1000, 60000);
  CHECK(unknown.number == 1);
  // The device's 0 is 10,000 here, and it runs 1 % fast.
  const ClockOffset device{0, 10100, -10000, -9900, 250};
  TraceFacts facts = facts_of({});
  facts.device_errors = {250, -1};
  const RankTrace trace = RankTrace::unpacked(RankTrace::packed("node", tracer, device));
  const nlohmann::json json = parsed(trace, facts);
  std::map<std::string, nlohmann::json> by_kind;
  for (const auto& span : spans_of(json))
    if (span["name"] != "all_reduce") by_kind[span["cat"]] = span;
  CHECK(by_kind.at("stream")["ts"] == 10.0);
  CHECK(by_kind.at("stream")["dur"] == 3.0);
  CHECK(by_kind.at("stream")["tid"] == by_kind.at("stream step")["tid"]);
  CHECK(by_kind.at("communication")["dur"] == 1.0);
  CHECK(by_kind.at("communication")["args"]["bytes"] == 100);
  CHECK(by_kind.at("communication")["args"]["axis"] == "k");
  CHECK(by_kind.at("step")["ts"] == 0);
  const nlohmann::json& errors = json["otherData"]["device_clock_error_us_by_rank"];
  CHECK(errors == nlohmann::json{0.25, nullptr});
  for (const char* name : {"compute stream", "communication stream, axis k", "steps"})
    CHECK(json.dump().find(name) != std::string::npos);
  // Nobody has told when it landed: at the end.
  for (const auto& span : spans_of(json))
    if (span["name"] == "all_reduce") CHECK((span["ts"] == 19.0 && span["dur"] == 0.0));
}

TEST_CASE("what has not ended does so with the trace, and what had no room is told") {
  Tracer tracer(1);
  const TraceMark writer = tracer.begin_writer();
  tracer.add(Kind::step, "step", 1, 2);
  CHECK(writer.number == 0);
  CHECK(tracer.lost() == 1);
  RankTrace trace = sent(tracer);
  trace.spans[0].start = 3000;
  const nlohmann::json json = parsed(trace, facts_of({0, 10000, 500, 500, 250}));
  CHECK(spans_of(json)[0]["ts"] == 1.5);
  CHECK(spans_of(json)[0]["dur"] == 6.5);
  CHECK(json["otherData"]["clock_error_us"] == 0.25);
  CHECK(json.dump().find("\"count\":1") != std::string::npos);
}

TEST_CASE("a mark says nothing to another tracer") {
  Tracer before(4), tracer(4);
  const int group = before.add_group("k", {0, 1});
  const TraceMark mark = before.begin(group, "all_reduce", 1);
  tracer.end(mark);
  tracer.end(TraceMark{});
  tracer.waited(mark, 1);
  CHECK(tracer.take_spans().empty());
}

TEST_CASE("a text that is cut short is an error") {
  Tracer tracer(4);
  tracer.enter("matmul");
  tracer.enter("");
  const std::string text = RankTrace::packed("node", tracer);
  for (std::size_t bytes = 0; bytes < text.size(); bytes += 7)
    CHECK_THROWS_AS(RankTrace::unpacked(text.substr(0, bytes)), Error);
}

}  // namespace t3d
