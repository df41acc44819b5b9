// The resolved input: what input.toml says, with every default filled in. Plain data; the schema
// (names, types, checks, help) is config/config_schema.cpp. Widths and counts are explained
// there.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "core/options.hpp"
#include "hetero/balance/share_controller.hpp"

namespace t3d {

struct RunOptions {
  std::string name, dir;
  std::int64_t seed = 1;
  index_t steps = 0;     // 0 = by tokens
  double tokens = 0;     // 0 = by steps
  double hours = 0;      // of one life; 0 = no limit
  index_t pause_at = 0;  // step; 0 = nowhere
  bool requeue = true;
};

struct InitConfig {
  std::string from;         // "hf:DIR", or a checkpoint; empty = fresh weights
  bool grow_vocab = false;  // it may have fewer tokens than model.vocab
};

struct MeshConfig {
  index_t replicas = 1;
  bool replicas_auto = false;
  bool cuboid_auto = true;
  std::array<index_t, 3> cuboid{1, 1, 1};  // p, q, r
  std::vector<int> cuboids;                // p, q, r of each replica; empty = all as cuboid
  std::vector<int> place;                  // slot -> world rank; empty = identity
  std::string plan;                        // a file, taken whole; empty = none
  // Explicit widths as weights per part (empty = even): tokens over i; outputs (heads, ffn, vocab)
  // over j; contractions (hidden) over k.
  std::vector<double> tokens, outputs, contractions;
  KeepRule keep = KeepRule::automatic;                 // gathered operands kept to backward
  double gather_budget_mib = 1024;                     // for keep = automatic
  AttentionRule attention = AttentionRule::automatic;  // over k
  DeviceRule device = DeviceRule::automatic;
  TransportRule transport = TransportRule::automatic;  // between GPUs
};

/// One [[data.source]] and one [[data.validation]] (config/data_lists.hpp).
struct DataSource {
  std::vector<std::string> files;
  double weight = 1;
  std::string name;  // empty = its number
};
struct ValidationSet {
  std::vector<std::string> files;
  std::string name;
};

struct DataConfig {
  std::vector<std::string> train, valid;
  std::vector<DataSource> sources;  // a mixture instead of train
  std::vector<ValidationSet> validations;
  std::string tokenizer;  // its file or folder; "" = from the token file / bytes
  bool shuffle = true;
  TokenFormat format = TokenFormat::automatic;
  index_t ignore_token = -1;  // as a target; below 0 = none
};

struct BatchConfig {
  index_t sequences = 0;  // per step, all replicas
  index_t micro = 0;      // sequences per replica per pass; 0 = all at once
  Recompute recompute = Recompute::none;
  std::vector<double> shares;  // of the replicas, as weights; empty = even
};

struct CheckpointConfig {
  std::string dir;
  index_t every_steps = 0;  // 0 = only by minutes and at the end
  double every_minutes = 30;
  index_t keep = 2;
  AsyncRule asynchronous = AsyncRule::automatic;
  index_t major_every = 0;       // steps; checkpoints at its multiples are never deleted
  std::string restart = "auto";  // auto | never | PATH
  bool verify = true;
  index_t ranks_per_file = 0;  // 0 = the ranks of a node
};

struct EvalConfig {
  index_t every_steps = 0;
  index_t batches = 20;
};

struct LogConfig {
  index_t every_steps = 1;
  bool json = true, csv = false, tensorboard = false;
  bool progress = true;  // a bar when the screen is a terminal
  index_t samples = 0;   // texts written after every validation
};

/// Where the speeds of the ranks come from at the start.
enum class SpeedSource { equal, probe, file };
template <>
struct Words<SpeedSource> {
  static constexpr std::array<std::string_view, 3> all{"equal", "probe", "file"};
};

struct HeteroConfig {
  SpeedSource speeds = SpeedSource::probe;
  std::string file;          // for speeds = file
  std::string cluster;       // cluster.toml; empty = no prediction
  double probe_seconds = 2;  // at most
};

struct EmulateConfig {
  std::vector<double> slowdown;       // by rank; empty = none
  std::vector<std::string> schedule;  // "STEP:RANK:FACTOR"
  std::vector<double> memory_mib;     // by rank; empty = as measured
};

/// Some rank is made slower.
[[nodiscard]] inline bool emulates(const EmulateConfig& emulate) {
  return !emulate.slowdown.empty() || !emulate.schedule.empty();
}

/// What a kind of node computes on.
enum class NodeDevice { automatic, cpu };
template <>
struct Words<NodeDevice> {
  static constexpr std::array<std::string_view, 2> all{"auto", "cpu"};
};

/// One [[nodes]] (config/nodes.hpp).
struct NodeKind {
  std::string name, feature, partition;  // what it is found by; empty = any
  index_t ranks = 0;                     // of the job on each node; 0 = not stated
  int threads = 0;                       // per rank; 0 = as debug.threads
  NodeDevice device = NodeDevice::automatic;
  double speed = -1;  // relative; negative = not stated
};

/// Of a rank.
inline constexpr int kMostThreads = 4096;

struct DebugConfig {
  bool check_finite = true;
  double watchdog_seconds = 300;
  double io_seconds = 1800;
  double lost_seconds = 6;  // without an answer until a node counts as lost; 0 = not watched
  int threads = 0;          // per rank; 0 = cores / ranks on the node
  std::vector<std::string> replan;  // "STEP:FILE": another plan after that step
  std::vector<int> trace;           // the first and the last step that are traced; empty = none
  bool graphs = true;  // GPU: micro-batches recorded as graphs where the transport allows
};

struct Config {
  RunOptions run;
  ModelConfig model;
  InitConfig init;
  MeshConfig mesh;
  DataConfig data;
  BatchConfig batch;
  PrecisionConfig precision;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  AggregateConfig aggregate;
  HeteroConfig hetero;
  BalanceOptions balance;
  EmulateConfig emulate;
  CheckpointConfig checkpoint;
  EvalConfig eval;
  LogConfig log;
  DebugConfig debug;
  std::vector<NodeKind> nodes;
  std::vector<std::string> notes;  // what of the input is not read as it is written, in sentences
};

}  // namespace t3d
