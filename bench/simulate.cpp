// How long simulated lives take: a day of jobs of several sizes, one core.
//
//   build/cpu/bench/t3d_bench_simulate
#include <fmt/format.h>

#include <chrono>

#include "hetero/simulate/many_lives.hpp"

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

}  // namespace

int main() {
  fmt::print("{:<34}{:>9}{:>7}{:>10}{:>12}{:>10}{:>12}{:>10}\n", "", "ranks", "runs", "ms/run",
             "events/run", "losses", "checkpoints", "useful %");
  for (const Row& row : {Row{"64 nodes, copies", 64, "K80", 2, 0.5, 1000},
                         Row{"1,024 nodes, checkpoints only", 1024, "K80", 1, 5, 1000},
                         Row{"1,024 nodes, copies", 1024, "K80", 2, 0.5, 1000},
                         Row{"8,192 nodes, copies of 3", 8192, "K80", 3, 0.5, 1000},
                         Row{"65,536 nodes, copies of 3", 65536, "K80", 3, 0.5, 100},
                         Row{"65,536 nodes, V100 hazard", 65536, "V100", 3, 0.5, 100}}) {
    const SimulatedJob job = day_job(row);
    const auto start = std::chrono::steady_clock::now();
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
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const auto runs = double(row.runs);
    fmt::print("{:<34}{:>9}{:>7}{:>10.3f}{:>12.0f}{:>10.0f}{:>12.0f}{:>10.1f}\n", row.name,
               row.nodes, row.runs, 1e3 * seconds / runs, events / runs, losses / runs,
               checkpoints / runs, 100 * useful / all);
  }
}
