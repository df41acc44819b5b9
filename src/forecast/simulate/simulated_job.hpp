// A job whose life can be simulated: what it shall do, the sizes it may have, what happens to its
// nodes, and what everything costs. The planner makes it from a model and a cluster; job_plan.hpp
// has its form as a file. Pure data. Seconds, hours where the name says so, prices in the job's own
// currency.
#pragma once
#include <limits>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "core/words.hpp"
#include "forecast/simulate/hazard.hpp"

namespace t3d {

/// Nodes that are alike for the job.
struct SimulatedClass {
  std::string name;
  index_t nodes = 0;          // that the site gives the job at most; 0: as many as it asks for
  double price_per_hour = 0;  // of one node
  Hazard hazard;              // of one node: preempted or dead; its age begins when the job gets it
  /// Mean time until another node takes the place of a lost one (exponential).
  double return_seconds = std::numeric_limits<double>::infinity();
  bool warned = false;    // its losses are announced by the site's grace before
  std::string node_list;  // the site's nodes of this kind, "n[1-4]"; empty = not known
};

/// One size that the job may have: a step of the staircase.
struct JobSize {
  std::string name;            // of the shape, for people
  std::vector<index_t> nodes;  // by class
  double step_seconds = 0;
  double samples_per_step = 0;  // sequences, say; the job's work is counted in them
  [[nodiscard]] double samples_per_second() const { return samples_per_step / step_seconds; }
};

struct JobCosts {
  double checkpoint_stall_seconds = 0;  // training stands still
  double checkpoint_write_seconds = 0;  // from its beginning until it counts; >= the stall
  double restart_seconds = 0;           // from ranks started to the first step, from a checkpoint
  double reshape_seconds = 0;           // to another size without a checkpoint
  double spare_seconds = 0;             // an idle node takes the place of a lost one
  double copy_seconds = 0;              // of each step, while copies are kept
};

struct JobSite {
  double grace_seconds = 0;  // between a warning and the loss of nodes or job
  double walltime_seconds = std::numeric_limits<double>::infinity();  // of one life
  /// Wait in the queue, of every start but the first: lognormal with this median and 90 % quantile
  /// (>= the median). 0: no wait.
  double queue_median_seconds = 0, queue_p90_seconds = 0;
  bool first_wait = false;              // the first start waits too
  double job_preemptions_per_hour = 0;  // of the whole job at once
  double crashes_per_node_hour = 0;     // without a warning; the node stays
};

/// What follows from the loss of a node in use.
enum class Recovery : int {
  requeue,  // the job ends, waits in the queue, restarts
  in_place  // the other nodes go on
};
/// What a job with too few nodes for its size does.
enum class Sizing : int {
  rule,    // what decide_size() says
  shrink,  // always the largest size that is possible, also when it grows
  wait     // always for the nodes of the size it had
};

struct SimulationPolicy {
  std::string name = "as planned";
  Recovery recovery = Recovery::requeue;
  int copies = 1;  // of the state, in memory of other nodes too: 1 = only its own
  /// Between the beginnings of two checkpoints; 0: Young's, from the hazard at the nodes' ages.
  double interval_seconds = 0;
  index_t spares = 0;  // idle nodes kept beside the largest size, of each class that loses nodes
  Sizing sizing = Sizing::rule;
};

struct SimulatedJob {
  std::string name, source, currency = "USD";
  double samples = 0;  // to train
  std::vector<SimulatedClass> classes;
  std::vector<JobSize> sizes;  // ascending by samples per second
  double step_spread = 0;      // relative standard deviation of one step's time
  double step_error = 0;  // relative standard error of all step times: one factor for a whole run
  /// Where step times are peaks' and no run is faster: all of them take exp(step_slower |n|) times
  /// as long, n normal, one for a whole run.
  double step_slower = 0;
  JobCosts costs;
  JobSite site;
  SimulationPolicy policy;
};

template <>
struct Words<Recovery> {
  static constexpr std::array<std::string_view, 2> all{"requeue", "in_place"};
};
template <>
struct Words<Sizing> {
  static constexpr std::array<std::string_view, 3> all{"rule", "shrink", "wait"};
};

}  // namespace t3d
