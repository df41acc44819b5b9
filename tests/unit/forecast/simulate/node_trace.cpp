// Traces: what readers make of them, what they refuse, and how they are replayed.
#include "forecast/simulate/node_trace.hpp"

#include "core/error.hpp"
#include "core/node_list.hpp"
#include "support/catch.hpp"
#include "unit/forecast/simulate/job_rig.hpp"

namespace t3d::test {
namespace {

const std::string kTrace =
    "time_s,change,node\n0,1,a\n0,1,b\n60,1,c\n100,-1,a\n100,-1,b\n200,1,d\n300,-1,c\n";
const std::string kSacct =
    "JobID|NodeList|Start|End|State|Partition\n"
    "7|n[1-3]|2026-02-28T23:00:00|2026-03-01T01:00:00|PREEMPTED|gpu\n"
    "7.batch|n1|2026-02-28T23:00:00|2026-03-01T01:00:00|CANCELLED|gpu\n"
    "8|n2|2026-03-01T01:00:00|2026-03-01T03:00:00|COMPLETED|gpu\n"
    "9|None assigned|Unknown|Unknown|PENDING|gpu\n"
    "10|n2,m07|2026-03-01T03:30:00|2026-03-01T04:00:00|NODE_FAIL|gpu\n"
    "11|n3|2026-03-01T04:30:00|Unknown|RUNNING|gpu\n";

std::string fault_of(const std::string& text) {
  try {
    (void)parse_any_trace(text, "f");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::config);
    return error.what();
  }
  return "none";
}

TEST_CASE("a trace of single changes") {
  const NodeTrace trace = parse_any_trace(kTrace, "f");
  CHECK(trace.seconds == 300);
  CHECK(trace.changes == std::vector<NodeChange>{
                             {0, 2, 0}, {60, 1, 60}, {100, -2, 0}, {200, 1, 200}, {300, -1, 60}});
  index_t lost = 0;
  double hours = 0;
  for (const SeenNode& seen : trace.lives) {
    lost += seen.life.lost ? 1 : 0;
    hours += seen.life.hours;
  }
  CHECK(lost == 3);
  CHECK(hours * 3600 == Approx(100 + 100 + 240 + 100));
}

TEST_CASE("lives of some nodes only") {
  const NodeTrace trace = parse_any_trace(kSacct, "f");
  const std::vector<NodeLife> own = lives_of(trace, "n2");
  CHECK(lives_of(trace, "").size() == trace.lives.size());
  CHECK((!own.empty() && own.size() < trace.lives.size()));
  CHECK(lives_of(trace, "x[1-4]").empty());
}

TEST_CASE("what sacct says") {
  const NodeTrace trace = parse_any_trace(kSacct, "f");
  CHECK(trace.seconds == 5.5 * 3600);  // from the first Start to the last one
  CHECK(trace.changes == std::vector<NodeChange>{{0, 3, 0},
                                                 {7200, -3, 0},
                                                 {7200, 1, 7200},  // n2 is given again at once
                                                 {16200, 1, 16200},
                                                 {18000, -1, 7200},  // one of two
                                                 {19800, 1, 19800}});
  std::string comma = kSacct;
  for (char& letter : comma)
    if (letter == '|') letter = ',';
  comma.replace(comma.find("n2,m07"), 6, "\"n2,m07\"");
  CHECK(parse_any_trace(comma, "f").changes == trace.changes);
}

TEST_CASE("where a node fails, the job's other nodes do not") {
  const std::string failed =
      "NodeList|Start|End|State\n"
      "n[1-64]|2026-03-01T00:00:00|2026-03-01T10:00:00|NODE_FAIL\n"
      "n[1-6,8-64]|2026-03-01T10:00:00|2026-03-01T20:00:00|COMPLETED\n"
      "n7|2026-03-01T12:00:00|2026-03-01T20:00:00|COMPLETED\n";
  const NodeTrace trace = parse_any_trace(failed, "f");
  CHECK(trace.changes == std::vector<NodeChange>{{0, 64, 0}, {36000, -1, 0}, {43200, 1, 43200}});
  index_t lost = 0;
  for (const SeenNode& seen : trace.lives) {
    lost += seen.life.lost ? 1 : 0;
    CHECK((!seen.life.lost || seen.node == "n7"));
  }
  CHECK(lost == 1);
}

// A node is taken after three hours of every second day, and stands idle for the most of both.
TEST_CASE("nodes live while a job holds them") {
  std::string text = "JobID|User|NodeList|Start|End|State\n";
  for (int day = 1; day <= 20; ++day)
    text += fmt::format("{0}|ann|n1|2026-03-{0:02}T00:00:00|2026-03-{0:02}T0{1}:00:00|{2}\n", day,
                        day % 2 == 0 ? 3 : 1, day % 2 == 0 ? "PREEMPTED" : "COMPLETED");
  const NodeTrace trace = parse_any_trace(text, "f");
  double hours = 0, lost = 0;
  for (const SeenNode& seen : trace.lives) {
    hours += seen.life.hours;
    lost += seen.life.lost ? 1 : 0;
  }
  CHECK(trace.lives.size() == 20);
  CHECK(hours == Approx(40));
  CHECK(lost / hours == Approx(0.25));
  CHECK(trace.only_user == "ann");
  CHECK(parse_any_trace(text + "99|bob|n1|2026-03-25T00:00:00|2026-03-25T01:00:00|FAILED\n", "f")
            .only_user.empty());
}

TEST_CASE("broken traces are answered with their line") {
  CHECK(fault_of("") == "f is empty");
  CHECK(fault_of("a,b\n").starts_with("f:1: neither a trace"));
  CHECK(fault_of("time_s,change\n0,1\n") == "f:1: there is no column node");
  const std::string head = "time_s,change,node\n0,1,a\n";
  CHECK(fault_of(head + "5,1\n") == "f:3: 2 cells, the first line has 3");
  CHECK(fault_of(head + "\n5,1,b,c\n") == "f:4: 4 cells, the first line has 3");
  CHECK(fault_of(head + "x,1,b\n") == "f:3: time_s is 'x', not a number");
  CHECK(fault_of(head + "nan,1,b\n") == "f:3: time_s is 'nan', not a number");
  CHECK(fault_of(head + "-1,1,b\n") == "f:3: time_s goes back from 0 to -1");
  CHECK(fault_of(head + "5,2,b\n") == "f:3: change is '2', not 1 or -1");
  CHECK(fault_of(head + "5,1,a\n") == "f:3: node a comes twice");
  CHECK(fault_of(head + "5,-1,b\n") == "f:3: node b goes without having come");
  CHECK(fault_of(head + "5,1,\n") == "f:3: the node has no name");
  CHECK(fault_of(head + "5,-1,a\n") == "f has 5 s only, at least 60 are needed");
  CHECK(fault_of("time_s,change,node\n") == "f has no node");

  const std::string jobs = "NodeList|Start|End|State\n";
  const std::string times = "|2026-03-01T01:00:00|2026-03-01T03:00:00|";
  CHECK(fault_of(jobs + "n[1-" + times + "PREEMPTED\n").starts_with("f:2: NodeList: 'n[1-' is no"));
  CHECK(fault_of(jobs + "n[3-1]" + times + "PREEMPTED\n").find("is no list") != std::string::npos);
  CHECK(fault_of(jobs + "n[1-999999]" + times + "X\n").find("100000 nodes") != std::string::npos);
  CHECK(fault_of(jobs + "n1|2026-03-01|2026-03-01T03:00:00|X\n").starts_with("f:2: Start is"));
  CHECK(fault_of(jobs + "n1|2026-13-01T01:00:00|Unknown|X\n").starts_with("f:2: Start is"));
  CHECK(fault_of(jobs + "n1|2026-03-01T01:00:00|2026-02-01T01:00:00|X\n") ==
        "f:2: End lies before Start");
  CHECK(fault_of("NodeList|Start|End\n") == "f:1: there is no column State");
}

TEST_CASE("lists of nodes") {
  using Names = std::vector<std::string>;
  CHECK(expand_node_list("a,b[1-2,07],c[1-2]d[3]") ==
        Names{"a", "b1", "b2", "b07", "c1d3", "c2d3"});
  CHECK(expand_node_list("r[098-101]") == Names{"r098", "r099", "r100", "r101"});
  for (const char* bad : {"", "a,", "a]", "a[", "a[]", "a[1", "a[[1]]", "a[x]", "a[1-2-3]"})
    CHECK_THROWS_AS(expand_node_list(bad), Error);
  std::string deep = "a";
  for (int pair = 0; pair < 100000; ++pair) deep += "[1]";
  CHECK_THROWS_AS(expand_node_list(deep), Error);
}

/// (seconds, nodes) after each moment, up to `end`.
std::vector<std::pair<double, index_t>> replay(NodeSource& source, double begin, double end) {
  std::vector<NodeEvent> events;
  source.begin(begin, events);
  index_t nodes = 0;
  std::vector<std::pair<double, index_t>> counts;
  const auto count = [&](double seconds) {
    for (const NodeEvent& event : events) nodes += event.change;
    events.clear();
    counts.emplace_back(seconds, nodes);
  };
  count(begin);
  while (source.next() <= end) {
    const double now = source.next();
    source.take(events);
    count(now);
  }
  return counts;
}

TEST_CASE("a replay goes through the trace again and again") {
  using Counts = std::vector<std::pair<double, index_t>>;
  const NodeTrace trace = parse_any_trace(kTrace, "f");
  // At its end one node is left, at its beginning there are two.
  const Counts once{{0, 2}, {60, 3}, {100, 1}, {200, 2}, {300, 1}};
  Counts twice = once;
  for (const auto& [seconds, nodes] : Counts{{300, 2}, {360, 3}, {400, 1}, {500, 2}})
    twice.emplace_back(seconds, nodes);
  CHECK(replay(*replayed_nodes(trace, {8}, 0), 0, 550) == twice);
  CHECK(replay(*replayed_nodes(trace, {8}, 150), 0, 60) == Counts{{0, 1}, {50, 2}});
  // No more than wanted; what is left out steps in.
  CHECK(replay(*replayed_nodes(trace, {2}, 0), 0, 250) ==
        Counts{{0, 2}, {60, 2}, {100, 1}, {200, 2}});
  // Time passes in the queue, too.
  const auto source = replayed_nodes(trace, {8}, 0);
  CHECK(replay(*source, 0, 60) == Counts{{0, 2}, {60, 3}});
  source->release();
  CHECK(source->next() == kNoTime);
  CHECK(replay(*source, 3e6 + 150, 3e6 + 250) == Counts{{3e6 + 150, 1}, {3e6 + 200, 2}});
}

TEST_CASE("lives under a replayed trace add up") {
  const NodeTrace trace = parse_any_trace(kSacct, "f");
  SimulatedJob job = small_job();
  job.sizes = {{"", {1}, 1, 1}, {"", {2}, 1, 2}, {"", {3}, 1, 3}};
  job.samples = 400000;
  for (const int copies : {1, 2}) {
    SimulationPolicy policy;
    policy.recovery = Recovery::in_place;
    policy.copies = copies;
    for (const JobOutcome& outcome : simulate_lives(job, policy, {20, 1, &trace})) {
      CHECK(outcome.finished);
      CHECK(sum_of_parts(outcome) == Approx(outcome.seconds).epsilon(1e-9));
      CHECK(outcome.losses > 0);
    }
  }
}

}  // namespace
}  // namespace t3d::test
