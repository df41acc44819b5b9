// What a command line asks for: the command and its words. Everything else is a key of the input.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "data/tokenize.hpp"
#include "run/run_words.hpp"

namespace t3d {

struct EvalCommand {
  std::string checkpoint, token_file;
  index_t sequences = 0;  // 0 = all
  bool json = false;
};

struct GenerateCommand {
  std::string checkpoint;
  std::vector<std::string> prompts;
  std::string prompt_file;  // empty = none, "-" = standard input
  std::vector<std::string> stops;
  index_t tokens = 256;
  index_t batch = 8;
  double temperature = 1;
  index_t top_k = 0;  // 0 = off
  double top_p = 1;   // 1 = off
  bool greedy = false, ignore_eos = false, json = false, no_stream = false;
  std::optional<bool> document_begin;  // the begin of a document before prompts; as the model's own
  std::int64_t seed = 1;
};

struct InspectCommand {
  std::string path;
  bool verify = false;
  bool all = false;  // every line; else the first ten
};

struct ExportCommand {
  std::string checkpoint, folder;
  std::string format = "hf", dtype = "fp32";
  std::vector<std::string> eos;  // ids or tokens that end a text; empty = the checkpoint's
};

struct ImportCommand {
  std::string folder, dir;
  index_t context = 0, vocab = 0;  // 0 = the model's
  bool no_tokenizer = false;       // leave it out
};

struct StatusCommand {
  std::vector<std::string> dirs;
  bool json = false;
};

struct ReportCommand {
  std::vector<std::string> dirs;
  std::string output = "report.html";
};

struct WatchCommand {
  std::string dir;
  double interval = 1;  // seconds
  bool once = false;
};

struct PlanCommand {
  std::string input, cluster, output;  // output: folder; empty = none
  std::string from;                    // run folder or checkpoint; empty = as the input says
  std::string objective;               // empty = by what is asked for
  std::optional<double> deadline_seconds, budget;
  std::string budget_unit;  // "EUR"; empty = that of the prices
  double risk = 0.95;
  index_t nodes = 0, most_nodes = 0, top = 10;
  bool json = false;
  bool elastic = false;    // a schedule of sizes
  std::string noise_from;  // a run's folder; empty = `noise`
  struct Noise {
    double last = 0, exponent = 0;  // sequences at the end of the run; of the part of it
  };
  std::optional<Noise> noise;
  index_t most_batch = 0;  // sequences; 0 = as the aggregation lets it grow
};

struct SimulateCommand {
  std::string plan;
  std::string trace = "weibull", history;  // files; "weibull": sampled
  index_t runs = 1000;
  std::int64_t seed = 1;
  std::vector<std::string> policies;  // compared instead of the usual ones
  std::optional<double> deadline_seconds;
  std::string output;  // folder; empty = none
  bool json = false;
};

struct ScalingCommand {
  std::string input;
  std::string collect;  // a study's folder, or one of runs: only read; empty = run `input`
  std::string output;   // empty = scaling-NAME
  std::vector<index_t> ranks;
  std::vector<std::string> shapes{"auto"};
  bool weak = false, slurm = false;
  bool roofline = true;  // each point's operators are measured
  index_t repeats = 5, steps = 30;
  double spread = 0.02;
  std::string launcher = "mpirun -n {ranks}";
  index_t ranks_per_node = 1;  // slurm
  index_t threads = 0;         // of each rank; 0 = the same at every point
};

struct TokenizeCommand {
  std::vector<std::string> inputs;
  std::string prefix;
  TokenizeOptions options;
};

struct CalibrateCommand {
  std::string output;                // by the command line: cluster.toml, with from_run that of add
  std::string add;                   // a file of before; empty = none
  std::string class_name;            // of the job's only class; empty = made from its device
  std::string folder;                // whose file system is measured; empty = that of the output
  std::string device = "auto";       // a DeviceRule's word
  std::vector<std::string> formats;  // ComputeType's words; empty = by device
  std::vector<std::string> presets;  // classes from data sheets
  std::string from_run;              // run folder whose factors are added; empty = none
  bool from_slurm = false;
  double seconds = 240;
  index_t threads = 0;           // of a CPU rank; 0 = its part of the node's cores
  std::vector<double> slowdown;  // by rank, emulated: as emulate.slowdown; empty = none
  [[nodiscard]] bool measures() const { return from_run.empty() && !from_slurm && presets.empty(); }
};

struct CommandLine : RunWords {
  enum class Action {
    train,      // input, overrides
    dry_run,    // input, overrides, dry_run_ranks
    print,      // text: help, version, defaults, explanation, reference
    sbatch,     // input, overrides, sbatch_ranks
    plan,       // plan, overrides
    tokenize,   // tokenize
    eval,       // eval, overrides
    generate,   // generate, overrides
    inspect,    // inspect
    exports,    // exports
    imports,    // imports
    simulate,   // simulate
    status,     // status
    watch,      // watch
    report,     // report
    probe,      // input, overrides, probe_output
    calibrate,  // calibrate
    scaling     // scaling, overrides
  };
  Action action = Action::train;
  std::optional<index_t> dry_run_ranks;  // absent: the ranks started
  index_t sbatch_ranks = 0;              // 0 = one on each node
  std::string text;
  TokenizeCommand tokenize;
  EvalCommand eval;
  GenerateCommand generate;
  InspectCommand inspect;
  ExportCommand exports;
  ImportCommand imports;
  PlanCommand plan;
  SimulateCommand simulate;
  StatusCommand status;
  ReportCommand report;
  WatchCommand watch;
  CalibrateCommand calibrate;
  ScalingCommand scaling;
  std::string probe_output;     // file for the speeds; empty = none
  std::string probe_operators;  // file for the plan's operators one by one; empty = speeds
};

}  // namespace t3d
