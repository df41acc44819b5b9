#include "forecast/simulate/node_trace.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "core/node_list.hpp"
#include "core/utf8.hpp"
#include "forecast/simulate/trace_lines.hpp"

namespace t3d {
namespace {

constexpr std::size_t kShown = 60;    // bytes of a name that is not understood
constexpr double kLeastSeconds = 60;  // of a trace that can be replayed

/// Sums over the lives must not depend on the order of a hash table, or of jobs.
void sort_lives(std::vector<SeenNode>& lives) {
  std::sort(lives.begin(), lives.end(), [](const SeenNode& a, const SeenNode& b) {
    return std::tie(a.life.hours, a.life.lost, a.node) <
           std::tie(b.life.hours, b.life.lost, b.node);
  });
}

/// Makes a trace of single events, in the order of time.
class TraceBuilder {
 public:
  explicit TraceBuilder(const std::string& source) { trace_.source = source; }

  [[nodiscard]] bool has(const std::string& node) const { return born_.contains(node); }
  void come(double seconds, const std::string& node) {
    born_.emplace(node, seconds);
    add({seconds, 1, seconds});
  }
  void go(double seconds, const std::string& node) {
    const auto found = born_.find(node);
    add({seconds, -1, found->second});
    trace_.lives.push_back({node, {(seconds - found->second) / 3600, true}});
    born_.erase(found);
  }
  [[nodiscard]] NodeTrace finish(double seconds) {
    for (const auto& [node, born] : born_)
      trace_.lives.push_back({node, {(seconds - born) / 3600, false}});
    sort_lives(trace_.lives);
    trace_.seconds = seconds;
    if (trace_.changes.empty()) throw_error(ExitCode::config, "{} has no node", trace_.source);
    if (seconds < kLeastSeconds)
      throw_error(ExitCode::config, "{} has {:g} s only, at least {:g} are needed", trace_.source,
                  seconds, kLeastSeconds);
    return std::move(trace_);
  }

 private:
  void add(const NodeChange& change) {
    NodeChange* last = trace_.changes.empty() ? nullptr : &trace_.changes.back();
    if (last != nullptr && last->seconds == change.seconds &&
        (last->change > 0) == (change.change > 0) && last->born_seconds == change.born_seconds)
      last->change += change.change;
    else
      trace_.changes.push_back(change);
    if (trace_.changes.size() > kMostChanges)
      throw_error(ExitCode::config, "{} has more than {} changes", trace_.source, kMostChanges);
  }

  NodeTrace trace_;
  std::unordered_map<std::string, double> born_;
};

}  // namespace

NodeTrace parse_node_trace(const std::string& text, const std::string& source) {
  TraceLines lines(text, source);
  const std::size_t time = lines.column("time_s"), change = lines.column("change"),
                    node = lines.column("node");
  TraceBuilder builder(source);
  double now = 0;
  while (lines.next()) {
    const double seconds = lines.number(time);
    if (seconds < now) lines.refuse("time_s goes back from {} to {}", now, seconds);
    now = seconds;
    const std::string name(lines.cell(node));
    const std::string_view sign = lines.cell(change);
    if (sign != "1" && sign != "+1" && sign != "-1")
      lines.refuse("change is '{}', not 1 or -1", printable(sign, kShown));
    if (name.empty()) lines.refuse("the node has no name");
    if (builder.has(name) == (sign != "-1"))
      lines.refuse("node {} {}", printable(name, kShown),
                   sign == "-1" ? "goes without having come" : "comes twice");
    sign == "-1" ? builder.go(now, name) : builder.come(now, name);
  }
  return builder.finish(now);
}

namespace {

/// Days since 1970 of a date of the Gregorian calendar.
index_t days_of(index_t year, index_t month, index_t day) {
  year -= month <= 2 ? 1 : 0;
  const index_t era = year / 400, of_era = year - era * 400;
  const index_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/// "2026-11-22T14:00:00"; false where it is none.
bool read_time(std::string_view word, double& seconds) {
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:dd";
  if (word.size() != kForm.size()) return false;
  for (std::size_t at = 0; at < word.size(); ++at)
    if (kForm[at] == 'd' ? word[at] < '0' || word[at] > '9' : word[at] != kForm[at]) return false;
  const auto field = [&](std::size_t from, std::size_t digits) {
    index_t value = 0;
    for (std::size_t at = from; at < from + digits; ++at) value = 10 * value + (word[at] - '0');
    return value;
  };
  const index_t month = field(5, 2), day = field(8, 2), hour = field(11, 2), minute = field(14, 2);
  if (month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59) return false;
  const index_t days = days_of(field(0, 4), month, day);
  seconds = static_cast<double>(((days * 24 + hour) * 60 + minute) * 60 + field(17, 2));
  return true;
}

struct JobEdge {
  double seconds = 0;
  bool ends = false;
  std::size_t job = 0;
  bool failed = false;  // one of its nodes
};

struct TracedJob {
  std::vector<std::string> nodes;
  double start = 0, end = -1;  // < start: it still runs
  bool preempted = false;
  std::string failed;  // the node that was lost, where one was
};

/// The two ends of a job, in absolute seconds; only an end that takes the nodes is one.
void read_job(const TraceLines& lines, const std::array<std::size_t, 4>& columns,
              std::vector<JobEdge>& edges, std::vector<TracedJob>& jobs, double& last) {
  const auto [nodes, start, end, state] = columns;
  const std::string_view list = lines.cell(nodes);
  if (list.empty() || list == "None assigned" || lines.cell(start) == "Unknown" ||
      lines.cell(start) == "None")
    return;
  const bool failed = lines.cell(state).starts_with("NODE_FAIL");
  JobEdge from{0, false, jobs.size()}, to{0, true, jobs.size(), failed};
  if (!read_time(lines.cell(start), from.seconds))
    lines.refuse("Start is '{}', not a time such as 2026-11-22T14:00:00",
                 printable(lines.cell(start), kShown));
  const bool open = lines.cell(end) == "Unknown";
  if (!open && !read_time(lines.cell(end), to.seconds))
    lines.refuse("End is '{}', not a time such as 2026-11-22T14:00:00",
                 printable(lines.cell(end), kShown));
  if (!open && to.seconds < from.seconds) lines.refuse("End lies before Start");
  try {
    jobs.push_back({expand_node_list(list),
                    from.seconds,
                    open ? -1 : to.seconds,
                    lines.cell(state).starts_with("PREEMPTED"),
                    {}});
  } catch (const Error& error) {
    lines.refuse("NodeList: {}", error.what());
  }
  edges.push_back(from);
  if (!open && (failed || jobs.back().preempted)) edges.push_back(to);
  last = std::max(last, open ? from.seconds : to.seconds);
}

/// A job ends with NODE_FAIL when one of its nodes fails, and sacct does not say which: taken for
/// it is the one on which the next job starts last. `edges`: by time.
void narrow_failures(std::vector<JobEdge>& edges, std::vector<TracedJob>& jobs) {
  const auto fails = [](const JobEdge& edge) { return edge.failed; };
  if (std::none_of(edges.begin(), edges.end(), fails)) return;
  std::unordered_map<std::string, std::vector<double>> starts;  // of jobs, by node
  for (const JobEdge& edge : edges)
    if (!edge.ends)
      for (const std::string& node : jobs[edge.job].nodes) starts[node].push_back(edge.seconds);
  for (JobEdge& edge : edges) {
    if (!edge.failed) continue;
    const auto back = [&](const std::string& node) {
      const std::vector<double>& own = starts.at(node);
      const auto next = std::lower_bound(own.begin(), own.end(), edge.seconds);
      return next == own.end() ? std::numeric_limits<double>::infinity() : *next;
    };
    const std::vector<std::string>& nodes = jobs[edge.job].nodes;
    const auto lost = std::max_element(
        nodes.begin(), nodes.end(),
        [&](const std::string& a, const std::string& b) { return back(a) < back(b); });
    TracedJob one;
    one.nodes = {*lost};
    jobs[edge.job].failed = *lost;
    edge.job = jobs.size();
    jobs.push_back(std::move(one));
  }
}

/// A node lives as long as a job holds it: of one that stands idle nobody sees whether it would
/// have been taken. A job's own end says only that its nodes lived that long.
std::vector<SeenNode> lives_of_jobs(std::span<const TracedJob> jobs, double last) {
  std::vector<SeenNode> lives;
  for (const TracedJob& job : jobs)
    for (const std::string& node : job.nodes) {
      const double end = job.end < job.start ? last : job.end;
      lives.push_back({node, {(end - job.start) / 3600, job.preempted || node == job.failed}});
    }
  sort_lives(lives);
  return lives;
}

/// The only one in the column; empty where there are several, or none is named.
class OnlyUser {
 public:
  void see(std::string_view user) {
    if (user.empty()) return;
    several_ = several_ || (!user_.empty() && user_ != user);
    user_ = user;
  }
  [[nodiscard]] std::string name() const { return several_ ? "" : user_; }

 private:
  std::string user_;
  bool several_ = false;
};

}  // namespace

NodeTrace parse_sacct(const std::string& text, const std::string& source) {
  TraceLines lines(text, source);
  const std::array columns{lines.column("NodeList"), lines.column("Start"), lines.column("End"),
                           lines.column("State")};
  const auto& names = lines.names();
  const auto id = std::find(names.begin(), names.end(), "JobID") - names.begin();
  const auto user = std::find(names.begin(), names.end(), "User") - names.begin();
  OnlyUser only;
  std::vector<JobEdge> edges;
  std::vector<TracedJob> jobs;
  double last = 0;
  std::size_t nodes = 0;
  while (lines.next()) {
    const bool step = id < std::ssize(names) &&
                      lines.cell(static_cast<std::size_t>(id)).find('.') != std::string_view::npos;
    if (step) continue;
    if (user < std::ssize(names)) only.see(lines.cell(static_cast<std::size_t>(user)));
    const std::size_t before = jobs.size();
    read_job(lines, columns, edges, jobs, last);
    if (jobs.size() > before) nodes += jobs.back().nodes.size();
    if (nodes > kMostChanges) lines.refuse("more than {} nodes of jobs", kMostChanges);
  }
  // What ends at one moment goes before what starts then: a node can be taken and given again.
  std::stable_sort(edges.begin(), edges.end(), [](const JobEdge& a, const JobEdge& b) {
    return a.seconds != b.seconds ? a.seconds < b.seconds : a.ends && !b.ends;
  });
  const std::size_t all_jobs = jobs.size();
  narrow_failures(edges, jobs);
  TraceBuilder builder(source);
  const double first = edges.empty() ? 0 : edges.front().seconds;
  for (const JobEdge& edge : edges)
    for (const std::string& node : jobs[edge.job].nodes)
      if (builder.has(node) == edge.ends)
        edge.ends ? builder.go(edge.seconds - first, node)
                  : builder.come(edge.seconds - first, node);
  NodeTrace trace = builder.finish(last - first);
  trace.lives = lives_of_jobs(std::span(jobs).first(all_jobs), last);
  trace.only_user = only.name();
  return trace;
}

std::vector<NodeLife> lives_of(const NodeTrace& trace, const std::string& list) {
  std::vector<std::string> names;
  if (!list.empty()) names = expand_node_list(list);
  const std::unordered_set<std::string> wanted(names.begin(), names.end());
  std::vector<NodeLife> lives;
  for (const SeenNode& seen : trace.lives)
    if (list.empty() || wanted.contains(seen.node)) lives.push_back(seen.life);
  return lives;
}

NodeTrace parse_any_trace(const std::string& text, const std::string& source) {
  if (text.empty()) throw_error(ExitCode::config, "{} is empty", source);
  const std::string first = text.substr(0, text.find('\n'));
  if (first.find("NodeList") != std::string::npos) return parse_sacct(text, source);
  if (first.find("time_s") != std::string::npos) return parse_node_trace(text, source);
  throw_error(ExitCode::config,
              "{}:1: neither a trace (time_s,change,node) nor an output of sacct with NodeList, "
              "Start, End, State",
              source);
}

}  // namespace t3d
