// Bamboo's two traces of preempted nodes (Thorpe et al., NSDI 2023), replayed with its own step
// times, prices and delays, under our rule for sizes and our recovery. What is like for like and
// what is not stands in docs/results/simulate.md.
//
//   build/cpu/bench/t3d_bench_bamboo_replay --data DIR [MODEL]     (BERT)
//
// DIR holds bamboo_trace_p3.csv, bamboo_trace_g4dn.csv (time_s, change, node),
// bamboo_step_times.csv (model, system, stages, pipelines, nodes, samples_per_step, step_s) and
// bamboo_constants.csv (name, model, value, unit).
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "forecast/simulate/many_lives.hpp"
#include "forecast/simulate/trace_lines.hpp"

using namespace t3d;

namespace {

std::string read(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw_error(ExitCode::no_input, "cannot read {}", path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Measured {
  index_t nodes = 0;
  double samples_per_second = 0;
};

/// Rows of one model: pipelines of so many stages on spot nodes, and the on-demand run.
struct StepTimes {
  std::map<index_t, std::vector<Measured>> by_stages;  // ascending by nodes
  Measured on_demand;
  double samples_per_step = 0;
};

StepTimes read_step_times(const std::string& path, const std::string& model) {
  const std::string text = read(path);
  TraceLines lines(text, path);
  const std::size_t name = lines.column("model"), system = lines.column("system"),
                    stages = lines.column("stages"), nodes = lines.column("nodes"),
                    samples = lines.column("samples_per_step"), step = lines.column("step_s");
  StepTimes times;
  while (lines.next()) {
    if (lines.cell(name) != model) continue;
    times.samples_per_step = lines.number(samples);
    const Measured measured{index_t(lines.number(nodes)),
                            times.samples_per_step / lines.number(step)};
    if (lines.cell(system) == "on_demand")
      times.on_demand = measured;
    else
      times.by_stages[index_t(lines.number(stages))].push_back(measured);
  }
  if (times.by_stages.empty()) throw_error(ExitCode::config, "{} has no {}", path, model);
  return times;
}

double constant(const std::string& path, const std::string& name, const std::string& model) {
  const std::string text = read(path);
  TraceLines lines(text, path);
  const std::size_t names = lines.column("name"), models = lines.column("model"),
                    values = lines.column("value");
  while (lines.next())
    if (lines.cell(names) == name && lines.cell(models) == model) return lines.number(values);
  throw_error(ExitCode::config, "{} has no {} of '{}'", path, name, model);
}

/// Between two measured numbers of nodes linear; nothing below the first, the last beyond it.
double rate_at(const std::vector<Measured>& points, index_t nodes) {
  if (nodes < points.front().nodes) return 0;
  for (std::size_t at = 1; at < points.size(); ++at) {
    const Measured &low = points[at - 1], &high = points[at];
    if (nodes > high.nodes) continue;
    const double part = double(nodes - low.nodes) / double(high.nodes - low.nodes);
    return low.samples_per_second + part * (high.samples_per_second - low.samples_per_second);
  }
  return points.back().samples_per_second;
}

struct Staircase {
  const char* name;
  std::vector<Measured> sizes;
};

std::vector<Staircase> staircases(const StepTimes& times, index_t stages, index_t most) {
  const std::vector<Measured>& rows = times.by_stages.at(stages);
  std::vector<Staircase> all{{"whole pipelines, as Bamboo", {}}, {"any number of nodes", {}}};
  for (const Measured& row : rows)
    if (row.nodes <= most) all[0].sizes.push_back(row);
  for (index_t nodes = 1; nodes <= most; ++nodes)
    if (const double rate = rate_at(rows, nodes); rate > 0) all[1].sizes.push_back({nodes, rate});
  if (times.by_stages.size() > 1) {
    all.push_back({"any number, best depth", {}});
    for (index_t nodes = 1; nodes <= most; ++nodes) {
      double best = 0;
      for (const auto& [depth, points] : times.by_stages)
        best = std::max(best, rate_at(points, nodes));
      if (best > 0) all.back().sizes.push_back({nodes, best});
    }
  }
  if (times.on_demand.nodes > 0) {
    all.push_back({"no redundancy, linear (assumed)", {}});
    const double each = times.on_demand.samples_per_second / double(times.on_demand.nodes);
    for (index_t nodes = rows.front().nodes; nodes <= most; ++nodes)
      all.back().sizes.push_back({nodes, each * double(nodes)});
  }
  for (Staircase& stairs : all)  // more nodes that are not faster are no size
    std::erase_if(stairs.sizes, [&](const Measured& size) {
      return std::any_of(stairs.sizes.begin(), stairs.sizes.end(), [&](const Measured& other) {
        return other.nodes < size.nodes && other.samples_per_second >= size.samples_per_second;
      });
    });
  return all;
}

/// Nodes can be used so long after they came; those taken before are never seen.
NodeTrace delayed(const NodeTrace& trace, double seconds) {
  std::vector<NodeChange> changes;
  for (const NodeChange& change : trace.changes) {
    NodeChange later = change;
    later.born_seconds += seconds;
    if (change.change > 0) later.seconds += seconds;
    if (change.change < 0 && change.seconds < later.born_seconds) {
      // Out of what came then.
      for (NodeChange& come : changes)
        if (come.change > 0 && come.seconds == later.born_seconds) come.change += change.change;
      continue;
    }
    changes.push_back(later);
  }
  std::erase_if(changes, [](const NodeChange& change) { return change.change == 0; });
  std::stable_sort(changes.begin(), changes.end(),
                   [](const NodeChange& a, const NodeChange& b) { return a.seconds < b.seconds; });
  NodeTrace result = trace;
  result.changes = std::move(changes);
  return result;
}

/// Node-seconds that are paid: from coming to being taken.
double paid_seconds(const NodeTrace& trace) {
  double sum = 0;
  for (const NodeChange& change : trace.changes)
    sum += double(change.change) * (trace.seconds - change.seconds);
  return sum;
}

/// The most nodes that are there at a time: what the group of nodes was asked to have.
index_t asked_nodes(const NodeTrace& trace) {
  index_t nodes = 0, most = 0;
  for (const NodeChange& change : trace.changes) most = std::max(most, nodes += change.change);
  return most;
}

struct Setting {
  double stall_seconds = 10, restart_seconds = 30, price = 0.91;
  int copies = 2;
  Sizing sizing = Sizing::rule;
};

SimulatedJob job_of(const Staircase& stairs, double samples_per_step, const Setting& setting) {
  SimulatedJob job;
  job.samples = 1e12;  // more than the trace has time for
  job.classes = {{"spot", 0, setting.price, Hazard(), kNoTime}};
  for (const Measured& size : stairs.sizes)
    job.sizes.push_back({fmt::format("{} nodes", size.nodes),
                         {size.nodes},
                         samples_per_step / size.samples_per_second,
                         samples_per_step});
  // A snapshot of 12 bytes for each of 0.34e9 weights, over 12 nodes, at 4 GB/s.
  job.costs = {0.1, 30, setting.restart_seconds, setting.stall_seconds, setting.stall_seconds, 0};
  job.policy.recovery = Recovery::in_place;
  job.policy.copies = setting.copies;
  job.policy.sizing = setting.sizing;
  return job;
}

/// Which copies a loss meets is a matter of chance: means of so many draws, and the worst.
constexpr index_t kDraws = 50;

void replay(const NodeTrace& given, const NodeTrace& usable, const Staircase& stairs,
            double samples_per_step, const Setting& setting) {
  const SimulatedJob job = job_of(stairs, samples_per_step, setting);
  std::vector<JobOutcome> outcomes;
  double worst = kNoTime;
  for (index_t draw = 0; draw < kDraws; ++draw) {
    const auto source = replayed_nodes(usable, wanted_nodes(job, job.policy), 0);
    outcomes.push_back(
        simulate_life(job, job.policy, *source, {1, draw, true}, {given.seconds, 1'000'000}));
    worst = std::min(worst, outcomes.back().samples / given.seconds);
  }
  const LivesSummary mean = summary_of(outcomes);
  const double dollars_per_hour = setting.price * paid_seconds(given) / given.seconds;
  const auto percent = [&](LifePart part) { return 100 * mean.share[std::size_t(part)]; };
  fmt::print(
      "{:<32}{:>6}{:>9.0f}{:>11.1f}{:>8.1f}{:>8.2f}{:>9.1f}{:>7.1f}{:>8.1f}{:>7.1f}{:>10.0f}{:>12."
      "1f}\n",
      setting.sizing == Sizing::rule ? stairs.name : fmt::format("  sizing: {}", setting.sizing),
      setting.copies, setting.stall_seconds, mean.samples_per_second, worst,
      mean.samples_per_second / dollars_per_hour, percent(LifePart::useful),
      percent(LifePart::lost),
      percent(LifePart::reshape) + percent(LifePart::restart) + percent(LifePart::checkpoint),
      percent(LifePart::waiting), mean.reshapes + mean.restarts, mean.roll_backs);
}

void print_head(const char* name, const std::string& model, const NodeTrace& given, double ready) {
  fmt::print("\n{}, {}: {:.2f} h, {:.2f} nodes on average, each usable {:.0f} s after it came\n",
             name, model, given.seconds / 3600, paid_seconds(given) / given.seconds, ready);
  fmt::print("{:<32}{:>6}{:>9}{:>11}{:>8}{:>8}{:>9}{:>7}{:>8}{:>7}{:>10}{:>12}\n", "sizes",
             "copies", "stall s", "samples/s", "worst", "value", "useful %", "lost %", "stall %",
             "wait %", "reshapes", "roll-backs");
}

void replay_all(const std::string& data, const std::string& model) {
  const StepTimes times = read_step_times(data + "/bamboo_step_times.csv", model);
  const std::string constants = data + "/bamboo_constants.csv";
  const auto stages = index_t(constant(constants, "target_stages", model));
  const auto most = index_t(constant(constants, "target_nodes", model));
  Setting setting;
  setting.price = constant(constants, "spot_price", "");
  setting.restart_seconds = constant(constants, "global_rendezvous_time", "");
  const double creation = constant(constants, "node_creation_time", "");
  for (const char* name : {"p3", "g4dn"}) {
    const std::string path = fmt::format("{}/bamboo_trace_{}.csv", data, name);
    const NodeTrace given = parse_any_trace(read(path), path);
    const std::vector<Staircase> all =
        staircases(times, stages, std::min(most, asked_nodes(given)));
    for (const double ready : {creation, 0.0}) {
      print_head(name, model, given, ready);
      const NodeTrace usable = delayed(given, ready);
      for (const Staircase& stairs : all)
        for (const int copies : {2, 3}) {
          setting.copies = copies;
          for (const double stall : {10.0, 30.0, 60.0}) {
            setting.stall_seconds = stall;
            for (const Sizing sizing : {Sizing::rule, Sizing::shrink, Sizing::wait}) {
              setting.sizing = sizing;
              const bool wanted = sizing == Sizing::rule ? ready > 0 || stall == 10
                                                         : ready > 0 && &stairs == &all[1];
              if (wanted) replay(given, usable, stairs, times.samples_per_step, setting);
            }
          }
        }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || std::strcmp(argv[1], "--data") != 0) {
    fmt::print(stderr, "usage: {} --data DIR [MODEL]\n", argv[0]);
    return 64;
  }
  try {
    replay_all(argv[2], argc > 3 ? argv[3] : "BERT");
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return int(error.code());
  }
}
