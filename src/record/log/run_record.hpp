// run.json of a run folder: of every life what a reader needs to reproduce its figures. The list of
// lives is short lines; what mostly stays the same from life to life (program, hosts, input, plan,
// data) stands once in a table of its own, under a hash that the lives name. Keys and units:
// docs/17-scaling-studies.md.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/types.hpp"
#include "device/host_facts.hpp"

namespace t3d {

/// A name that nothing has, for a file that is put aside.
[[nodiscard]] std::string damaged_name(const std::string& path);

/// What was built, and what it runs with.
struct ProgramFacts {
  std::string version, commit, compiler, flags, build_type, mpi;
  std::string build;  // program_build_id(); tells builds of one commit apart
  std::vector<std::string> libraries;
};

/// One rank of a life, and where it is among `hosts`.
struct RankPlace {
  index_t host = 0;
  std::string device;  // "cpu" or the GPU's name
  int threads = 1;     // of a CPU rank
};

struct LinkFacts {
  double alpha_seconds = 0, beta_seconds_per_byte = 0;
};

/// Slurm's, empty without.
struct JobFacts {
  std::string id, name, partition, cluster, node_list;
};

/// Bytes by axis, over all ranks.
using AxisBytes = std::map<std::string, index_t>;

/// What is known when the life begins its steps.
struct LifeStart {
  index_t life = 1;
  std::string run;     // id
  double started = 0;  // seconds since 1970
  std::optional<JobFacts> job;
  std::vector<std::string> command;
  std::string folder;  // in which it was started: paths of the input are relative to it
  std::vector<std::pair<std::string, std::string>> environment;
  ProgramFacts program;
  std::vector<HostFacts> hosts;
  std::vector<RankPlace> ranks;
  std::string input, plan, data;  // texts: resolved input, plan.toml, what it is trained on
  std::string data_hash, tokenizer_hash;
  index_t replicas = 1;
  std::vector<std::vector<index_t>> cuboids;  // p, q, r of each replica
  index_t first_step = 0;                     // done by the checkpoint that it goes on from
  index_t sequences = 0, context = 0;
  index_t parameters = 0;
  double flops_per_token = 0;
  std::string number_format;
  std::optional<LinkFacts> inside, between;  // as probed
  double matmul_rate = 0, vendor_peak = 0;   // flops per second of all ranks; 0 = not known
  bool emulated = false;      // some rank is made slower, or several nodes are one machine
  bool shared_cores = false;  // some node has more threads of ranks than cores
  AxisBytes predicted_step;   // of all ranks, with the gathering of times
};

/// What is known when it has ended in order.
struct LifeEnd {
  double ended = 0;
  int code = 0;
  std::string reason;
  index_t steps = 0;             // done by this life
  double seconds = 0;            // from the first step's begin to the last one's end
  AxisBytes counted, predicted;  // of all ranks, in all that the life sent from its first step on
  index_t tensor_bytes = 0, resident_bytes = 0;  // largest rank's peak
  /// Of the first energy_steps steps, over all nodes; nothing where a node has no counter.
  std::optional<double> cpu_joules, gpu_joules;
  std::string why_no_energy;  // of the processors; empty where there is
  index_t energy_steps = 0;   // that the joules are of
  std::string plan;           // hash of the plan in force
};

/// What is wrong with the text of a run.json, in a few words: no JSON, another format, other kinds
/// than this program writes. Empty where nothing is.
[[nodiscard]] std::string run_record_fault(const std::string& text);

/// A run.json that was none: its new name, and what was wrong with it.
struct PutAside {
  std::string path, fault;
};
/// A life begins: adds it to DIR/run.json, which is replaced whole. A file that is no such record
/// stays beside it under another name. Error(io).
std::optional<PutAside> add_life_start(const std::string& dir, const LifeStart& start);
/// The life that was added last has ended. Error(io).
void add_life_end(const std::string& dir, const LifeEnd& end);

/// 16 hexadecimal digits, the same for the same text.
[[nodiscard]] std::string text_hash(const std::string& text);

}  // namespace t3d
