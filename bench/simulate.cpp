// How long simulated lives take (CPU time): a day of jobs of several sizes; when copies in memory
// pay; whether intervals hold.
//
//   build/cpu/bench/t3d_bench_simulate
#include <fmt/format.h>

#include <ctime>

#include "forecast/simulate/many_lives.hpp"

using namespace t3d;

namespace {

struct Row {
  const char* name;
  index_t nodes;  // with one rank each
  const char* hazard;
  int copies;
  double stall_seconds;
  index_t runs;
};

/// A day of training without losses on all nodes; eight sizes down to a half of them.
SimulatedJob day_job(const Row& row) {
  SimulatedJob job;
  job.classes = {{row.hazard, 0, 0.5, *published_hazard(row.hazard), 600}};
  for (index_t eighth = 8; eighth <= 16; ++eighth) {
    const index_t nodes = row.nodes * eighth / 16;
    job.sizes.push_back({"", {nodes}, 2.0 * double(row.nodes) / double(nodes), 4096});
  }
  job.samples = 4096 * 86400 / 2.0;
  job.step_spread = 0.05;
  job.costs = {row.stall_seconds, 20, 30, 1, 1, 0};
  job.policy.recovery = Recovery::in_place;
  job.policy.copies = row.copies;
  job.policy.spares = row.nodes / 50;
  return job;
}

/// Nodes that are lost at a constant rate of 0.016 per hour each, replaced after ten minutes; a
/// checkpoint of 5 s: where copies in memory begin to pay.
SimulatedJob constant_job(index_t nodes, int copies) {
  SimulatedJob job = day_job({"", nodes, "K80", copies, 5, 0});
  job.classes[0].hazard = Hazard::constant(0.016);
  job.costs = {5, 5, 30, 10, 10, 0};
  return job;
}

void print_crossover() {
  fmt::print("\n{:<12}{:>16}{:>22}{:>22}{:>16}\n", "nodes", "losses/h", "useful %, disk only",
             "useful %, 2 copies", "interval s");
  for (const index_t nodes :
       {index_t{16}, index_t{64}, index_t{256}, index_t{1024}, index_t{4096}}) {
    std::array<double, 2> useful{};
    for (const int copies : {1, 2}) {
      const SimulatedJob job = constant_job(nodes, copies);
      useful[std::size_t(copies - 1)] =
          100 * summary_of(simulate_lives(job, job.policy, {50, 1, nullptr})).goodput;
    }
    const double rate = 0.016 * double(nodes);
    fmt::print("{:<12}{:>16.2f}{:>22.1f}{:>22.1f}{:>16.0f}\n", nodes, rate, useful[0], useful[1],
               best_interval(5, rate, 1));
  }
}

/// How many of 2,000 runs lie in the interval of 90 % that 8,000 others gave.
void print_coverage() {
  fmt::print("\n{:<34}{:>14}\n", "2,000 runs, interval of 8,000", "covers %");
  std::uint64_t seed = 1;
  for (const index_t nodes : {index_t{16}, index_t{64}})
    for (const int copies : {1, 2}) {
      SimulatedJob job = day_job({"", nodes, "P100", copies, 0.5, 0});
      job.step_error = 0.02;
      job.site = {0, 6 * 3600, 600, 7200, false, 0.05, 1e-4};
      const Spread spread =
          summary_of(simulate_lives(job, job.policy, {8000, seed++, nullptr})).seconds;
      int inside = 0;
      for (const JobOutcome& outcome : simulate_lives(job, job.policy, {2000, seed++, nullptr}))
        if (outcome.seconds >= spread.p5 && outcome.seconds <= spread.p95) ++inside;
      fmt::print("{:<34}{:>14.1f}\n",
                 fmt::format("{} nodes, {}", nodes, copies > 1 ? "copies" : "disk only"),
                 inside / 20.0);
    }
}

}  // namespace

int main() {
  fmt::print("{:<34}{:>9}{:>7}{:>10}{:>12}{:>10}{:>12}{:>10}\n", "", "nodes", "runs", "ms/run",
             "events/run", "losses", "checkpoints", "useful %");
  for (const Row& row : {Row{"64 nodes, copies", 64, "K80", 2, 0.5, 1000},
                         Row{"1,024 nodes, checkpoints only", 1024, "K80", 1, 5, 1000},
                         Row{"1,024 nodes, copies", 1024, "K80", 2, 0.5, 1000},
                         Row{"8,192 nodes, copies of 3", 8192, "K80", 3, 0.5, 1000},
                         Row{"65,536 nodes, copies of 3", 65536, "K80", 3, 0.5, 100},
                         Row{"65,536 nodes, V100 hazard", 65536, "V100", 3, 0.5, 100}}) {
    const SimulatedJob job = day_job(row);
    const std::clock_t start = std::clock();
    double events = 0, losses = 0, checkpoints = 0, useful = 0, all = 0;
    for (index_t run = 0; run < row.runs; ++run) {
      std::vector<index_t> wanted = wanted_nodes(job, job.policy);
      const auto source = sampled_nodes(job, std::move(wanted), 1, run);
      const JobOutcome outcome = simulate_life(job, job.policy, *source, {1, run, false}, {86400});
      events += double(outcome.events);
      losses += double(outcome.losses);
      checkpoints += double(outcome.checkpoints);
      useful += outcome.part(LifePart::useful);
      all += outcome.seconds;
    }
    const double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
    const auto runs = double(row.runs);
    fmt::print("{:<34}{:>9}{:>7}{:>10.3f}{:>12.0f}{:>10.0f}{:>12.0f}{:>10.1f}\n", row.name,
               row.nodes, row.runs, 1e3 * seconds / runs, events / runs, losses / runs,
               checkpoints / runs, 100 * useful / all);
  }
  print_crossover();
  print_coverage();
}
