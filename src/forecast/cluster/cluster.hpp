// Cluster: what is known of a cluster before a job runs on it: classes of nodes with what operators
// take there, levels of the network, storage, start-up, scheduler. Plain data; cluster.toml is its
// file (app/cluster). Measured numbers have their standard error beside them, in the same unit; an
// error of 0 = stated, not measured. Seconds of an operator or a collective come from
// operator_estimator.hpp and level_estimator.hpp.
#pragma once
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "core/choices.hpp"
#include "core/ledger.hpp"
#include "core/types.hpp"

namespace t3d {

/// Where the rates of a class or a level come from.
enum class Calibrated { no, data_sheet, measured };
template <>
struct Words<Calibrated> {
  static constexpr std::array<std::string_view, 3> all{"uncalibrated", "uncalibrated (data sheet)",
                                                       "measured"};
};

struct Calibration {
  Calibrated state = Calibrated::no;
  std::string time;     // UTC, "2026-03-01T12:00:00Z"; empty = not measured
  std::string version;  // of the program that measured; of a data sheet its address
  friend bool operator==(const Calibration&, const Calibration&) = default;
};

/// What is measured of a class. Shapes of samples and terms of fits are those of
/// operator_terms.hpp.
enum class OperatorKind {
  matmul,
  attention_forward,
  attention_backward,
  whole,  // Newton-Schulz of one matrix (Muon)
  norm,
  activation,
  residual,
  loss,
  embedding,
  optimizer,
  count_
};
template <>
struct Words<OperatorKind> {
  static constexpr std::array<std::string_view, 10> all{
      "matmul",    "attention_forward", "attention_backward", "whole",
      "norm",      "activation",        "residual",           "loss",
      "embedding", "optimizer"};
};
inline constexpr std::size_t kOperatorKinds = static_cast<std::size_t>(OperatorKind::count_);

/// How the terms of a fit make seconds: their sum; or the first one, the call, plus the larger of
/// the second one, computing, and all others together, memory (as data sheets think of it).
enum class FitForm { sum, max };
template <>
struct Words<FitForm> {
  static constexpr std::array<std::string_view, 2> all{"sum", "max"};
};

/// Seconds by a term's unit, all >= 0; as many as the kind has terms.
struct Fit {
  FitForm form = FitForm::sum;
  std::vector<double> terms, errors;
  friend bool operator==(const Fit&, const Fit&) = default;
};

/// One measured point: the median and its standard error.
struct Sample {
  static constexpr std::size_t kMostColumns = 5;
  std::array<double, kMostColumns> shape{};  // as many as the kind has columns, then 0
  double seconds = 0, error = 0;
  friend bool operator==(const Sample&, const Sample&) = default;
};

/// One kind in one number format on one rank of a class, while its node's other ranks compute too.
struct OperatorTable {
  OperatorKind kind = OperatorKind::matmul;
  ComputeType format = ComputeType::fp32;
  Fit fit;
  std::vector<Sample> samples;
  bool unreliable = false;  // its times spread widely, measured twice (sample_spread.hpp)
  friend bool operator==(const OperatorTable&, const OperatorTable&) = default;
};

/// What runs on a class's nodes took, over what its tables say.
struct RunFactor {
  double value = 1, error = 0;              // error 0 = not measured
  static constexpr double kUnknown = 0.49;  // about the error of which steps said nothing
  friend bool operator==(const RunFactor&, const RunFactor&) = default;
};
struct RunFactors {
  RunFactor compute, inside, between;  // operators; messages inside nodes, between nodes
  RunFactor host;                      // starting operators
  index_t steps = 0;                   // that were measured; 0 = none
  std::string time;                    // of the last run's end, UTC
  std::vector<std::string> runs;       // their ids
  friend bool operator==(const RunFactors&, const RunFactors&) = default;
};
/// Each factor with its name.
inline constexpr std::array<std::pair<const char*, RunFactor RunFactors::*>, 4> kRunFactors{
    {{"compute", &RunFactors::compute},
     {"inside", &RunFactors::inside},
     {"between", &RunFactors::between},
     {"host", &RunFactors::host}}};

/// Whether a job may ask for the memory of a node (--mem). A scheduler that does not know how much
/// there is, or does not share it out, refuses or ignores the wish.
enum class AsksMemory { unknown, yes, no };
template <>
struct Words<AsksMemory> {
  static constexpr std::array<std::string_view, 3> all{"unknown", "yes", "no"};
};

/// Nodes that are alike for a plan.
struct NodeClass {
  std::string name;
  index_t nodes = 0;  // that a job may ask for, > 0
  index_t ranks_per_node = 1;
  index_t cores_per_rank = 0;  // 0 = not known
  index_t gpus_per_rank = 0;
  std::string device = "cpu";  // "cpu" or the GPU's name
  std::string processor;       // what the system calls it; empty = not known
  index_t memory_bytes = 0;    // of one rank, for its device's tensors; 0 = not known
  AsksMemory asks_memory = AsksMemory::unknown;
  /// Of a whole node: money, or what the scheduler bills. 0 = free, or nothing is known; then a
  /// plan counts node-hours.
  double price_per_node_hour = 0;
  std::string currency;  // "EUR", "billing units", ...; empty = node-hours
  /// Its nodes are lost to other jobs: announced by the partition's grace. Else they just fail.
  bool preemptible = false;
  /// Of a node to be lost, by its age: Weibull. Scale 0 = never. Shape below 1: mostly early.
  double hazard_shape = 1, hazard_scale_hours = 0;
  double return_hours = 0;  // mean time until another node replaces a lost one; 0 = not known
  std::vector<std::string> features;  // Slurm's
  std::string partition;              // Slurm's
  std::string node_list;              // "n[1-4]", as the scheduler writes it; may be empty
  double launch_seconds = 0, launch_seconds_error = 0;  // of the host, to start one operator
  /// Relative standard deviation of equal pieces of computing, a millisecond each, between ranks
  /// that meet after each; how much less it is in longer pieces (meeting.hpp).
  double jitter = 0, jitter_error = 0, jitter_exponent = 0;
  Calibration calibration;
  std::vector<OperatorTable> operators;
  RunFactors factors;  // of these tables and of the levels' (run_factors.hpp)
  friend bool operator==(const NodeClass&, const NodeClass&) = default;
};

/// One verb at one level. Shape of samples: other members, bytes that one rank sends to them
/// (comm/cost.hpp), groups that do so at once. Terms: of a message, of a byte, of a byte and
/// further group, of a call.
struct CollectiveTable {
  Verb verb = Verb::all_gather;
  Fit fit;
  std::vector<Sample> samples;
  bool unreliable = false;  // as OperatorTable's
  friend bool operator==(const CollectiveTable&, const CollectiveTable&) = default;
};
/// Verbs with a table.
inline constexpr std::array<Verb, 4> kLevelVerbs{Verb::all_gather, Verb::reduce_scatter,
                                                 Verb::all_reduce, Verb::broadcast};

/// Ranks that reach each other alike: of one node, of the nodes under one switch, of all. From the
/// innermost to the outermost; a message goes by the innermost level that has both ends.
struct Level {
  std::string name;        // "node", "leaf", "core", ...
  std::string node_class;  // whose; empty = all classes
  index_t nodes = 0;       // nodes in one group at most: 1 = inside a node, 0 = any number
  index_t ranks = 0;       // inside a node: ranks of one group (NVLink, socket); 0 = all
  index_t nics_per_node = 1;
  /// All nodes below a switch send so many times what its links to this level carry; >= 1. Their
  /// bytes take as many times longer (JobNodes::oversubscribed).
  double oversubscription = 1;
  double alpha_seconds = 0, alpha_seconds_error = 0;                  // of one message
  double beta_seconds_per_byte = 0, beta_seconds_per_byte_error = 0;  // one group sends
  /// So many groups send at once; 0 = not known.
  double beta_together_seconds_per_byte = 0, beta_together_seconds_per_byte_error = 0;
  index_t groups_together = 0;
  Calibration calibration;
  std::vector<CollectiveTable> collectives;
  friend bool operator==(const Level&, const Level&) = default;
};

/// So many processes at once, each with a file of its own.
struct StorageRate {
  index_t processes = 1;
  double bytes_per_second = 0, error = 0;  // of all together
  friend bool operator==(const StorageRate&, const StorageRate&) = default;
};

struct Storage {
  std::string folder;               // what was measured; empty = nothing
  std::vector<StorageRate> writes;  // to the disk (fsync); by ascending processes
  std::vector<StorageRate> reads;   // of what was just written: memory may have it
  double latency_seconds = 0, latency_seconds_error = 0;  // to make, sync and rename a small file
  Calibration calibration;
  /// Of `processes` that write so many bytes together; 0 = not known.
  [[nodiscard]] double write_seconds(double bytes, index_t processes) const;
  [[nodiscard]] double read_seconds(double bytes, index_t processes) const;
  friend bool operator==(const Storage&, const Storage&) = default;
};

/// From the start of the processes until all ranks have met, and until they can compute.
struct StartTime {
  index_t ranks = 1;
  double seconds = 0, error = 0;
  friend bool operator==(const StartTime&, const StartTime&) = default;
};
struct Startup {
  std::vector<StartTime> starts;  // by ascending ranks
  /// Between and beyond what was measured a line through the logarithm of ranks; 0 = not known.
  [[nodiscard]] double seconds(index_t ranks) const;
  friend bool operator==(const Startup&, const Startup&) = default;
};

/// What an hour of each is billed.
struct Billing {
  double node = 0, core = 0, gpu = 0, memory_gib = 0;
  friend bool operator==(const Billing&, const Billing&) = default;
};

struct SchedulerPartition {
  std::string name;
  std::vector<std::string> classes;  // of its nodes
  double time_limit_seconds = 0;     // 0 = none
  double grace_seconds = 0;          // between a preemption's signal and the kill
  index_t most_nodes = 0;            // of one job; 0 = all
  bool preemptible = false;          // its jobs give way to others
  bool fallback = false;             // jobs that name no partition run here
  Billing billing;
  friend bool operator==(const SchedulerPartition&, const SchedulerPartition&) = default;
};

struct Scheduler {
  std::string kind;                  // "slurm"; empty = none
  double requeue_delay_seconds = 0;  // from a job's end until it may start again
  /// Billed is the largest of a job's parts on each node, not their sum.
  bool bills_largest = false;
  std::vector<SchedulerPartition> partitions;
  friend bool operator==(const Scheduler&, const Scheduler&) = default;
};

struct Cluster {
  std::string name;
  std::vector<NodeClass> classes;  // names differ
  std::vector<Level> levels;       // pairs of name and class differ
  Storage storage;
  Startup startup;
  Scheduler scheduler;
  friend bool operator==(const Cluster&, const Cluster&) = default;

  /// Nothing where there is none.
  [[nodiscard]] const NodeClass* find_class(std::string_view wanted) const;
  /// That its jobs run in: the one it names, else the one of jobs that name none. Nothing where the
  /// scheduler has no such.
  [[nodiscard]] const SchedulerPartition* find_partition(const NodeClass& of) const;
  /// Of this class, or of all classes.
  [[nodiscard]] const Level* find_level(std::string_view wanted, std::string_view node_class) const;
};

/// `more` measured later: its classes and levels replace those of the same names, and what it knows
/// of storage, start-up and scheduler replaces that. What only people know (price, hazard,
/// preemption, nodes to ask for) stays where `more` does not say it; so do tables of number formats
/// that it did not measure, of ranks alike, and, where it has no rates, the ranks that the known
/// ones are of, and all that the file already says of nodes, prices, limits and billing.
[[nodiscard]] Cluster joined(const Cluster& known, const Cluster& more);
/// Where `more` has no rates (Slurm's tables) and says otherwise: what of `known` stays.
[[nodiscard]] std::vector<std::string> kept_notes(const Cluster& known, const Cluster& more);

}  // namespace t3d
