// One line per key, in the order in which --defaults and the documentation show them.
#include "config/config_schema.hpp"

#include <map>

#include "config/presets.hpp"
#include "core/slowdown.hpp"

namespace t3d {
namespace {

constexpr double kMany = 1e8;  // widths and counts: far above any use, far below overflow
constexpr double kLong = 1e12;

Range at_least(double low, double high = std::numeric_limits<double>::infinity()) {
  return {low, high, false, false};
}
Range above(double low) { return {low, std::numeric_limits<double>::infinity(), true, false}; }
Range share(bool low_open, bool high_open) { return {0, 1, low_open, high_open}; }

/// What a key may have beyond its name and help.
struct Extra {
  Range range = {};
  std::vector<std::string> words = {};
  std::string unit = "";
  std::string fallback = "";
  bool required = false;
  std::string old_name = "";
  std::vector<std::pair<std::string, std::string>> old_words = {};
};

template <class Table>
class TableRows {
 public:
  TableRows(std::vector<Key>& keys, std::string table, Table Config::*member)
      : TableRows(keys, std::move(table), [=](Config& c) -> Table& { return c.*member; }) {}
  /// Some keys of a table lie in a struct of their own.
  TableRows(std::vector<Key>& keys, std::string table, std::function<Table&(Config&)> fields)
      : keys_(keys), table_(std::move(table)), fields_(std::move(fields)) {}

  template <class Field>
  void add(const char* name, Field Table::*field, const char* help, Extra extra = {}) {
    const auto fields = fields_;
    if constexpr (Worded<Field>) {
      extra.words.assign(Words<Field>::all.begin(), Words<Field>::all.end());
      put(name, help, std::move(extra), [=](Config& c) -> Slot {
        Field& value = fields(c).*field;
        return WordSlot{[&value](std::string_view word) { value = *choice_of<Field>(word); },
                        [&value] { return word_of(value); }};
      });
    } else {
      put(name, help, std::move(extra), [=](Config& c) -> Slot { return &(fields(c).*field); });
    }
  }
  /// "auto" or an integer.
  void add_count(const char* name, index_t Table::*count, bool Table::*automatic, const char* help,
                 Extra extra) {
    const auto fields = fields_;
    put(name, help, std::move(extra), [=](Config& c) -> Slot {
      return CountSlot{&(fields(c).*count), &(fields(c).*automatic)};
    });
  }
  void add_whole_table(const char* name, const char* help, Extra extra) {
    const auto fields = fields_;
    put(name, help, std::move(extra), [=](Config& c) -> Slot { return &fields(c); });
  }

 private:
  void put(const char* name, const char* help, Extra extra, std::function<Slot(Config&)> slot) {
    keys_.push_back({table_, name, help, std::move(slot), extra.range, std::move(extra.words),
                     std::move(extra.unit), std::move(extra.fallback), extra.required,
                     std::move(extra.old_name), std::move(extra.old_words)});
  }
  std::vector<Key>& keys_;
  std::string table_;
  std::function<Table&(Config&)> fields_;
};

void run_keys(std::vector<Key>& keys) {
  TableRows rows(keys, "run", &Config::run);
  rows.add("name", &RunOptions::name, "Name of the run; run.dir follows from it.",
           {.fallback = "the input file's name without .toml"});
  rows.add("dir", &RunOptions::dir,
           "Folder of the run, with logs, resolved input and checkpoints. It is created.",
           {.fallback = "runs/<run.name>"});
  rows.add("seed", &RunOptions::seed,
           "All randomness (initial weights, data order, dropout) derives from it.",
           {.range = at_least(0)});
  rows.add("steps", &RunOptions::steps,
           "Stop after this many steps; 0 = by run.tokens. With both, the first that is reached "
           "counts.",
           {.range = at_least(0, kLong), .unit = "steps"});
  rows.add("tokens", &RunOptions::tokens, "Stop after this many tokens; 0 = by run.steps.",
           {.range = at_least(0, 1e18), .unit = "tokens"});
  rows.add("hours", &RunOptions::hours,
           "Stop with a checkpoint before this time has passed since the start, to be continued "
           "later; 0 = no limit. Slurm's time limit is known without this key.",
           {.range = at_least(0, 1e6), .unit = "hours"});
  rows.add("pause_at", &RunOptions::pause_at,
           "Stop with a checkpoint after this step, to be continued by a job of another size "
           "(plan --elastic); 0 = off. The job does not put itself back into the queue.",
           {.range = at_least(0, kLong), .unit = "steps"});
  rows.add("requeue", &RunOptions::requeue,
           "Slurm batch jobs: a run that was stopped from outside, or has lost a rank, puts its "
           "job back into the queue.");
}

void model_shape_keys(TableRows<ModelConfig>& rows) {
  const Range count = at_least(1, kMany);
  std::vector<std::string> known = preset_names();
  known.insert(known.begin(), "");  // none
  rows.add("preset", &ModelConfig::preset,
           "A known model that fills the keys of this table; keys written here win over it.",
           {.words = std::move(known)});
  rows.add("layers", &ModelConfig::layers, "Transformer blocks.",
           {.range = count, .required = true});
  rows.add("hidden", &ModelConfig::hidden,
           "Width of the residual stream; without head_size a multiple of heads.",
           {.range = count, .required = true});
  rows.add("heads", &ModelConfig::heads, "Attention heads (of the queries).",
           {.range = count, .required = true});
  rows.add("head_size", &ModelConfig::head_columns, "Size of a head. 0 = the default.",
           {.range = at_least(0, kMany), .fallback = "hidden / heads"});
  rows.add("kv_heads", &ModelConfig::kv_heads,
           "Heads of keys and values (grouped queries); must divide heads. 0 = heads.",
           {.range = at_least(0, kMany), .fallback = "model.heads"});
  rows.add("ffn", &ModelConfig::ffn, "Width inside the feed-forward part. 0 = the default.",
           {.range = at_least(0, kMany),
            .fallback = "4 hidden; with swiglu 8/3 hidden, rounded up to a multiple of 64"});
  rows.add("vocab", &ModelConfig::vocab,
           "Number of tokens. 0 = taken from the token file at the start.",
           {.range = at_least(0, kMany)});
  rows.add("context", &ModelConfig::context, "Tokens of a sequence.",
           {.range = count, .unit = "tokens", .required = true});
  rows.add("max_context", &ModelConfig::max_context,
           "Longest context that an exported model states (max_position_embeddings); it changes "
           "no computation. 0 = model.context.",
           {.range = at_least(0, kMany), .unit = "tokens"});
}

void rope_keys(std::vector<Key>& keys) {
  TableRows<RopeOptions> rows(keys, "model",
                              [](Config& c) -> RopeOptions& { return c.model.rope; });
  rows.add("rope_base", &RopeOptions::base, "Base of the rotation frequencies (rope).",
           {.range = above(0)});
  rows.add("rope_scaling", &RopeOptions::scaling,
           "How the rotation frequencies are changed for a context longer than that of the "
           "original training. The rope keys below mean what they do in rope_scaling of Hugging "
           "Face's config.json.");
  rows.add("rope_factor", &RopeOptions::factor,
           "How many times longer the context is (linear, llama3, yarn).", {.range = at_least(1)});
  rows.add("rope_original_context", &RopeOptions::original_context,
           "Context of the original training (llama3, yarn).",
           {.range = at_least(0, kMany), .unit = "tokens"});
  rows.add("rope_low_freq_factor", &RopeOptions::low_freq_factor,
           "Wavelengths above rope_original_context / this are stretched by rope_factor (llama3).",
           {.range = above(0)});
  rows.add("rope_high_freq_factor", &RopeOptions::high_freq_factor,
           "Wavelengths below rope_original_context / this stay as they are (llama3).",
           {.range = above(0)});
  rows.add("rope_beta_fast", &RopeOptions::beta_fast,
           "Pairs that turn more often than this within rope_original_context stay as they are "
           "(yarn).",
           {.range = above(0)});
  rows.add("rope_beta_slow", &RopeOptions::beta_slow,
           "Pairs that turn less often than this are stretched by rope_factor (yarn).",
           {.range = above(0)});
  rows.add("rope_attention_factor", &RopeOptions::attention_factor,
           "Multiplies queries and keys (yarn). 0 = 0.1 ln(rope_factor) + 1.",
           {.range = at_least(0)});
}

void model_keys(std::vector<Key>& keys) {
  TableRows rows(keys, "model", &Config::model);
  model_shape_keys(rows);
  rows.add("norm", &ModelConfig::norm, "Normalisation before attention and feed-forward.");
  rows.add("activation", &ModelConfig::activation, "Non-linearity of the feed-forward part.");
  rows.add("position", &ModelConfig::position,
           "How positions enter: a learned table, or rotation of queries and keys.");
  rope_keys(keys);
  rows.add("norm_eps", &ModelConfig::norm_eps, "Added to the variance before the square root.",
           {.range = above(0)});
  rows.add("qk_norm", &ModelConfig::qk_norm,
           "Every head of the queries and keys goes through an rmsnorm of its own.");
  rows.add("bias", &ModelConfig::bias, "Biases in the linear layers and in layernorm.");
  rows.add("attention_bias", &ModelConfig::attention_bias,
           "Which linear layers of attention have biases: none; qkv = those of queries, keys and "
           "values; all = the projection, too. auto = as model.bias.");
  rows.add("tied_embeddings", &ModelConfig::tied_embeddings,
           "The head uses the weights of the token embedding.");
  rows.add("dropout", &ModelConfig::dropout, "Part of the activations that is dropped in training.",
           {.range = share(false, true)});
  rows.add("init_std", &ModelConfig::init_std, "Standard deviation of the initial weights.",
           {.range = above(0)});
  rows.add("freeze", &ModelConfig::freeze,
           "Parameters that are not trained: names as `inspect` shows them, * for any letters "
           "(\"wte.*\", \"blocks.0.*\"). Not together with lora.rank, which trains the adapters "
           "alone.");
}

void lora_keys(std::vector<Key>& keys) {
  TableRows<LoraOptions> rows(keys, "lora", [](Config& c) -> LoraOptions& { return c.model.lora; });
  rows.add("rank", &LoraOptions::rank,
           "Train only two matrices of this rank beside each target; all other parameters stay "
           "as they are. 0 = train the model itself.",
           {.range = at_least(0, kMany)});
  rows.add("alpha", &LoraOptions::alpha,
           "The product of the two matrices is multiplied by alpha / rank. 0 = rank.",
           {.range = at_least(0)});
  rows.add("targets", &LoraOptions::targets,
           "Matrices that get an adapter: q, k, v, o of attention; gate (of swiglu), up, down of "
           "the feed-forward part.");
}

void init_keys(std::vector<Key>& keys) {
  TableRows rows(keys, "init", &Config::init);
  rows.add("from", &InitConfig::from,
           "Weights from which a new run begins: \"hf:DIR\" is a folder in Hugging Face's format "
           "(config.json, *.safetensors), anything else a checkpoint, a folder of checkpoints or "
           "a run folder. Keys of [model] that are not written are taken from there. Steps, "
           "schedule, optimizer and data start from the beginning. A run that is continued does "
           "not read it again. Empty = fresh weights.");
  rows.add("grow_vocab", &InitConfig::grow_vocab,
           "The weights may have fewer tokens than model.vocab: the rows of the other tokens are "
           "fresh.");
}

void mesh_keys(std::vector<Key>& keys) {
  TableRows rows(keys, "mesh", &Config::mesh);
  rows.add_count(
      "replicas", &MeshConfig::replicas, &MeshConfig::replicas_auto,
      "Copies of the whole cuboid, each with its share of the batch. auto = as many as are "
      "fastest on the present ranks, also in a continued run; needs cuboid = \"auto\". With "
      "cuboid = \"auto\", ranks that the replicas do not use are idle.",
      {.range = at_least(1, kMany)});
  rows.add_whole_table(
      "cuboid",
      "[p, q, r]: ranks along tokens, outputs and contractions. replicas * p * q * r must "
      "be the number of ranks. auto = the program chooses a shape for the present ranks, "
      "also in a continued run; for equal ranks the one that sends the fewest bytes per "
      "step.",
      {.range = at_least(1, kMany)});
  rows.add("cuboids", &MeshConfig::cuboids,
           "[p, q, r, p, q, r, ...]: a cuboid of its own for each replica, instead of cuboid, so "
           "that nodes of several kinds work together. Empty = every replica as cuboid.",
           {.range = at_least(1, kMany)});
  rows.add("plan", &MeshConfig::plan,
           "A plan.toml (of transformer3d plan, or of a run folder) that a new run takes whole: "
           "shape, places, widths and shares. Model, batch and optimizer must be those of this "
           "input. Empty = none.");
  rows.add("place", &MeshConfig::place,
           "World rank of each slot (r fastest, then q, p, replica). Empty = in order. Ranks "
           "that are not named are idle.",
           {.range = at_least(0)});
  rows.add("tokens", &MeshConfig::tokens,
           "Relative widths of the p parts of the tokens. Needs a written cuboid, as outputs and "
           "contractions do. The cut is between whole sequences, so a rank may get none. Empty = "
           "even. 0 = an empty part.",
           {.range = at_least(0)});
  rows.add("outputs", &MeshConfig::outputs,
           "Relative widths of the q parts of heads, feed-forward and vocabulary. Empty = even.",
           {.range = at_least(0)});
  rows.add("contractions", &MeshConfig::contractions,
           "Relative widths of the r parts of hidden. Empty = even.", {.range = at_least(0)});
  rows.add("keep", &MeshConfig::keep,
           "Which gathered operands stay in memory until the backward pass; the others are "
           "gathered again. auto = as many as gather_budget_mib allows.");
  rows.add("gather_budget_mib", &MeshConfig::gather_budget_mib,
           "Memory per rank for kept operands, for keep = \"auto\".",
           {.range = at_least(0), .unit = "MiB"});
  rows.add("attention", &MeshConfig::attention,
           "What axis k divides inside attention: whole sequences, or heads. auto = whichever "
           "gives the busiest rank less work.");
  rows.add("device", &MeshConfig::device,
           "Where ranks compute. auto = on GPUs if every rank has one of its own, else on CPUs; "
           "cuda = on GPUs, which ranks share if there are too few; mixed = each GPU has one "
           "rank, the other ranks use CPUs.");
  rows.add("transport", &MeshConfig::transport,
           "How GPU ranks send messages: by NCCL, or staged through host memory and MPI. auto = "
           "nccl in groups whose ranks all have a GPU of their own, staged in all others. nccl = "
           "in all groups; every rank then needs a GPU of its own.");
}

void data_keys(std::vector<Key>& keys) {
  TableRows rows(keys, "data", &Config::data);
  rows.add("train", &DataConfig::train, "Token files: one name or pattern, or a list of them.",
           {.required = true});
  rows.add("valid", &DataConfig::valid, "Token files for validation, like train.");
  rows.add("tokenizer", &DataConfig::tokenizer,
           "File or folder of a tokenizer. Empty = the one of the token file, or bytes.");
  rows.add("shuffle", &DataConfig::shuffle,
           "Shuffle the sequences by run.seed, in the same way for every mesh.");
  rows.add("ignore_token", &DataConfig::ignore_token,
           "Targets with this id (padding) count neither in the loss nor in the weight of a "
           "replica's gradient; below 0 = all targets count. A step without any target that "
           "counts leaves the weights as they are.",
           {.range = at_least(-1, 2147483647)});
  rows.add("format", &DataConfig::format,
           "Format of the token files; auto = by their signature. A file whose signature says "
           "another format is refused.");
}

void batch_and_precision_keys(std::vector<Key>& keys) {
  TableRows batch(keys, "batch", &Config::batch);
  batch.add("sequences", &BatchConfig::sequences, "Sequences per step, over all replicas.",
            {.range = at_least(1, kMany), .unit = "sequences", .required = true});
  batch.add("micro", &BatchConfig::micro,
            "Sequences that a replica computes at a time (gradients accumulate). 0 = all at once.",
            {.range = at_least(0, kMany), .unit = "sequences"});
  batch.add("recompute", &BatchConfig::recompute,
            "block = keep only the input of each block and compute the rest again in the backward "
            "pass: less memory, more work.");
  batch.add("shares", &BatchConfig::shares,
            "Shares of the replicas in the sequences of a step, as weights; a replica with 0 "
            "computes nothing and counts nothing. Empty = even.",
            {.range = at_least(0)});
  TableRows precision(keys, "precision", &Config::precision);
  precision.add(
      "compute", &PrecisionConfig::compute,
      "Type of activations and matrix products; master weights stay fp32 (fp64 with fp64). "
      "tf32 = fp32 with operands of products rounded to 11 bits (GPU); fp16 needs a GPU or "
      "the reference operators.");
  precision.add("matmul", &PrecisionConfig::matmul,
                "fp8 = operands of matrix products in 8 bits with one scale per tensor (GPU; bf16 "
                "and fp16 activations).");
  precision.add("reduce", &PrecisionConfig::reduce,
                "Type in which partial sums of activations are sent. auto = compute's; with 16-bit "
                "types and q or r above 4, fp32.");
  precision.add(
      "backend", &PrecisionConfig::backend,
      "Operators of CPU ranks: cpu is fast; reference is plain loops, and the only one for "
      "fp64.");
  precision.add(
      "gemm_engine", &PrecisionConfig::gemm_engine,
      "Matrix products on GPUs: native = our kernels, library = cuBLASLt, auto = the faster "
      "one for each shape.");
  precision.add("attention_engine", &PrecisionConfig::attention_engine,
                "Attention on GPUs: native = our kernels, library = cuDNN, auto = the faster one.");
  precision.add(
      "tune", &PrecisionConfig::tune,
      "On GPUs: time the engines for each shape when it first occurs, and keep the choices "
      "in the run folder, so that a continued run does the same arithmetic. false = no "
      "timing; always the library where there is one.");
  precision.add(
      "loss_scale", &PrecisionConfig::loss_scale,
      "Gradients of activations are multiplied by this number, so that small ones are not "
      "lost in fp16. 0 = 1; with fp16 a scale found by trial: 65536 at first, halved after "
      "a step whose gradient was not finite (that step is skipped), doubled after 2000 "
      "steps without one.",
      {.range = at_least(0)});
}

void optimizer_keys(std::vector<Key>& keys) {
  TableRows rows(keys, "optimizer", &Config::optimizer);
  rows.add("kind", &OptimizerConfig::kind,
           "The update rule. lamb = adamw, with the step of each matrix as long as the matrix, "
           "times lr; muon = orthogonalised momentum for the matrices of blocks, adamw for all "
           "other parameters.");
  rows.add("lr", &OptimizerConfig::lr, "Peak learning rate.", {.range = at_least(0)});
  rows.add("beta1", &OptimizerConfig::beta1, "Decay of the first moment (adamw, lamb, muon).",
           {.range = share(false, true)});
  rows.add("beta2", &OptimizerConfig::beta2, "Decay of the second moment (adamw, lamb, muon).",
           {.range = share(false, true)});
  rows.add("eps", &OptimizerConfig::eps,
           "Added to the square root of the second moment (adamw, lamb, muon).",
           {.range = above(0)});
  rows.add("weight_decay", &OptimizerConfig::weight_decay,
           "Weight decay of matrices; vectors have none.", {.range = at_least(0)});
  rows.add("momentum", &OptimizerConfig::momentum, "Momentum (sgd, muon). Negative = the default.",
           {.range = {-1, 1, false, true}, .fallback = "0.9 for sgd, 0.95 for muon"});
  rows.add("nesterov", &OptimizerConfig::nesterov, "Nesterov's form of momentum (sgd, muon).");
  rows.add("adamw_lr", &OptimizerConfig::adamw_lr,
           "muon: peak learning rate of all parameters but the matrices of blocks. 0 = "
           "optimizer.lr.",
           {.range = at_least(0), .fallback = "optimizer.lr"});
  rows.add("muon_scale", &OptimizerConfig::muon_scale,
           "muon: length of an orthogonalised step. rms = 0.2 sqrt(longer side): elements are "
           "about as large as adamw's, so that adamw's learning rates fit; shape = sqrt(max(1, "
           "outputs / inputs)), for learning rates near 0.02.");
  rows.add("newton_schulz_steps", &OptimizerConfig::newton_schulz_steps,
           "muon: iterations of the orthogonalisation.", {.range = at_least(1, 100)});
  rows.add("clip_norm", &OptimizerConfig::clip_norm, "Largest norm of the gradient; 0 = off.",
           {.range = at_least(0)});
}

void schedule_keys(std::vector<Key>& keys) {
  TableRows schedule(keys, "schedule", &Config::schedule);
  schedule.add("kind", &ScheduleConfig::kind,
               "Learning rate after the warm-up: constant; linear or cosine = falls to "
               "final_fraction; wsd = stays at the peak and falls linearly in the last "
               "decay_fraction.");
  schedule.add("warmup_steps", &ScheduleConfig::warmup_steps,
               "Linear rise from 0 in the first steps; must be below run.steps.",
               {.range = at_least(0, kLong), .unit = "steps"});
  schedule.add("final_fraction", &ScheduleConfig::final_fraction,
               "Learning rate at the end, as a fraction of the peak.",
               {.range = share(false, false)});
  schedule.add("decay_fraction", &ScheduleConfig::decay_fraction,
               "wsd: last part of the steps after the warm-up, in which the learning rate falls.",
               {.range = share(true, false)});
}

void aggregate_keys(std::vector<Key>& keys) {
  TableRows rows(keys, "aggregate", &Config::aggregate);
  rows.add("method", &AggregateConfig::method,
           "How the gradients of the replicas become one. mean = by samples; sum = each counts "
           "by its samples / reference_batch; adasum = parallel gradients are averaged, "
           "orthogonal ones added, so that optimizer.lr need not change with the number of "
           "replicas.");
  rows.add("placement", &AggregateConfig::placement,
           "adasum: where it is applied. pre = to the gradients, before the optimizer (sgd). "
           "post = to the changes that each replica's own optimizer makes (as Horovod does; "
           "every replica has optimizer state of its own and one more copy of the weights). gain "
           "= one shared optimizer steps along the mean gradient, and the step of each group is "
           "made longer as adasum would make it. auto = pre for sgd, else gain.");
  rows.add("algorithm", &AggregateConfig::algorithm,
           "adasum: gram = one exchange and one small sum, for any placement; flat = an "
           "all-reduce, with adasum's average step length. auto = gram.",
           {.old_name = "aggregate.transport", .old_words = {{"rvh", "gram"}}});
  rows.add("per", &AggregateConfig::per,
           "adasum: what is treated as one vector, with coefficients of its own.");
  rows.add("reference_batch", &AggregateConfig::reference_batch,
           "Sequences for which optimizer.lr was chosen. Gradients weigh samples / "
           "reference_batch; keep this number when the number of replicas or their shares change.",
           {.range = above(0),
            .unit = "sequences",
            .fallback = "batch.sequences / (mesh.replicas x leaves); must be written with "
                        "mesh.replicas = \"auto\", unless method = \"mean\""});
  rows.add("leaves", &AggregateConfig::leaves,
           "adasum: cut the samples of each replica into this many parts, each of which counts "
           "as a replica of its own. Needs memory for that many gradients.",
           {.range = at_least(1, 64)});
  rows.add("leaf", &AggregateConfig::leaf,
           "adasum: how a gradient of weight w other than 1 enters. noise = as w reference "
           "batches would, by the measured noise; linear = times w.");
  rows.add("wire", &AggregateConfig::wire,
           "adasum by gram: number format of messages. Sums are in fp32 in any case.");
  rows.add("gain_exponent", &AggregateConfig::gain_exponent,
           "placement gain: steps are multiplied by gain^this. Below 0 = 1 for sgd, else 0.5.",
           {.range = at_least(-1, 1)});
}

void balance_keys(std::vector<Key>& keys) {
  TableRows hetero(keys, "hetero", &Config::hetero);
  hetero.add("speeds", &HeteroConfig::speeds,
             "Where the first plan takes the speeds of the ranks from: equal = all are equal; "
             "probe = measured at the start; file = a file that transformer3d probe wrote.");
  hetero.add("file", &HeteroConfig::file, "The file for speeds = \"file\".");
  hetero.add("cluster", &HeteroConfig::cluster,
             "A cluster.toml of transformer3d calibrate: the run predicts its steps from it and "
             "logs the prediction beside the measured time. Empty = no prediction.");
  hetero.add("probe_seconds", &HeteroConfig::probe_seconds, "Most time for the measurement.",
             {.range = {0, 60, true, false}, .unit = "seconds"});
  TableRows balance(keys, "balance", &Config::balance);
  balance.add("kind", &BalanceOptions::kind,
              "What changes the ranks' parts of the batch during the run. off = nothing; model = "
              "the measured times of the steps.",
              {.old_words = {{"lbbsp_analytic", "model"}, {"lbbsp_numeric", "model"}}});
  balance.add("every", &BalanceOptions::every,
              "Steps from one gathering of the ranks' times to the next (56 bytes from each rank). "
              "Where GPUs record their steps as graphs: every 20.",
              {.range = at_least(1, kLong), .unit = "steps"});
  balance.add("window", &BalanceOptions::window, "The median of this many gatherings counts.",
              {.range = at_least(1, 1000)});
  balance.add("confirm", &BalanceOptions::confirm,
              "A change must look worthwhile this many times in succession.",
              {.range = at_least(1, 1000)});
  balance.add("min_gain", &BalanceOptions::min_gain,
              "A change must shorten the step by this part of it.", {.range = share(false, true)});
  balance.add("tolerance", &BalanceOptions::tolerance,
              "Ranks whose speeds differ by less than this count as equal.",
              {.range = share(false, true)});
  TableRows emulate(keys, "emulate", &Config::emulate);
  emulate.add(
      "slowdown", &EmulateConfig::slowdown,
      "How many times longer each rank computes: it sleeps before it sends. CPU ranks only.",
      {.range = at_least(1, kMostSlowdown)});
  emulate.add("schedule", &EmulateConfig::schedule,
              "Changes of slowdown during the run: \"STEP:RANK:FACTOR\", from that step on.");
  emulate.add("memory_mib", &EmulateConfig::memory_mib,
              "Memory for tensors that each rank claims to have. Empty = as measured.",
              {.range = at_least(0, 1e9), .unit = "MiB"});
}

void checkpoint_keys(std::vector<Key>& keys) {
  TableRows rows(keys, "checkpoint", &Config::checkpoint);
  rows.add("dir", &CheckpointConfig::dir, "Folder of the checkpoints.",
           {.fallback = "<run.dir>/ckpt"});
  rows.add("every_steps", &CheckpointConfig::every_steps,
           "Write a checkpoint every so many steps; 0 = only by minutes and at the end.",
           {.range = at_least(0, kLong), .unit = "steps"});
  rows.add("every_minutes", &CheckpointConfig::every_minutes,
           "Write a checkpoint after so many minutes; 0 = off. Whichever comes first.",
           {.range = at_least(0), .unit = "minutes"});
  rows.add("keep", &CheckpointConfig::keep,
           "How many of the newest checkpoints of this lineage stay. During a run one more "
           "stays, until a step after the newest was done. A new one is written before an old "
           "one is removed: the folder needs room for two more.",
           {.range = at_least(1, kMany)});
  rows.add("asynchronous", &CheckpointConfig::asynchronous,
           "Checkpoints are written by processes beside the ranks while training continues: the "
           "step waits only for a copy of the state in memory. auto = for states of 1 MiB or "
           "more; off = the step waits for the file system.");
  rows.add("major_every", &CheckpointConfig::major_every,
           "Checkpoints at multiples of this step are never deleted; 0 = none.",
           {.range = at_least(0, kLong), .unit = "steps"});
  rows.add("restart", &CheckpointConfig::restart,
           "auto = continue from the newest valid checkpoint of the newest lineage; never = "
           "start from the beginning; or the path of a checkpoint. Option -r wins.");
  rows.add("verify", &CheckpointConfig::verify, "Read back and compare checksums after writing.");
  rows.add("ranks_per_file", &CheckpointConfig::ranks_per_file,
           "Ranks that write into one file; 0 = the ranks of a node.",
           {.range = at_least(0, kMany)});
}

void eval_log_and_debug_keys(std::vector<Key>& keys) {
  TableRows eval(keys, "eval", &Config::eval);
  eval.add("every_steps", &EvalConfig::every_steps,
           "Validate every so many steps; 0 = only at the end.",
           {.range = at_least(0, kLong), .unit = "steps"});
  eval.add("batches", &EvalConfig::batches,
           "Batches of a validation during the run; the one at the end reads everything.",
           {.range = at_least(1, kMany)});
  TableRows log(keys, "log", &Config::log);
  log.add("every_steps", &LogConfig::every_steps,
          "A line on the screen and in run.log every so many steps.",
          {.range = at_least(1, kLong), .unit = "steps"});
  log.add("json", &LogConfig::json, "Write log.jsonl, one object per step.");
  log.add("csv", &LogConfig::csv, "Write log.csv, one line per step, for spreadsheets.");
  log.add("tensorboard", &LogConfig::tensorboard,
          "Write event files for TensorBoard into the folder tensorboard.");
  log.add("progress", &LogConfig::progress, "A progress bar when the screen is a terminal.");
  log.add("samples", &LogConfig::samples,
          "After every validation, so many short texts on the screen and in run.log: the first "
          "tokens of the validation text's first samples, and 40 tokens that the model continues "
          "them with; 0 = none.",
          {.range = at_least(0, 16)});
  TableRows debug(keys, "debug", &Config::debug);
  debug.add("check_finite", &DebugConfig::check_finite,
            "Stop when the loss or the gradient's norm is not finite.");
  debug.add("watchdog_seconds", &DebugConfig::watchdog_seconds,
            "A wait without progress for longer than this ends the run; the message says for what "
            "and for whom.",
            {.range = above(0), .unit = "seconds"});
  debug.add("io_seconds", &DebugConfig::io_seconds,
            "The same for waits during a checkpoint, in which other ranks may be writing or "
            "reading, and while a rank is busy with other files. A process that writes a "
            "checkpoint for longer is ended.",
            {.range = above(0), .unit = "seconds"});
  debug.add("lost_seconds", &DebugConfig::lost_seconds,
            "A node that does not answer for longer than this is lost, and the run ends; 0 = ranks "
            "and nodes are not watched.",
            {.range = at_least(0, 3600), .unit = "seconds"});
  debug.add("threads", &DebugConfig::threads, "Threads per rank; 0 = cores / ranks of the node.",
            {.range = at_least(0, kMostThreads)});
  debug.add("replan", &DebugConfig::replan,
            "Changes of plan during the run, to try them out: \"STEP:FILE\" takes the plan of "
            "that file after that step, \"STEP:same\" builds the run's own plan again. FILE is "
            "the plan.toml of a run in that shape, or an edited one. It may change shape, places, "
            "widths, shares and what is kept in memory; ranks, model, optimizer, precision, batch "
            "and aggregation must be this run's.");
  debug.add("trace", &DebugConfig::trace,
            "[first, last]: write what every rank did in these steps into trace.json of the run "
            "folder, for ui.perfetto.dev.",
            {.range = at_least(1)});
  debug.add("graphs", &DebugConfig::graphs,
            "GPU: submit each micro-batch as one graph, where nothing in it needs the host.");
}

}  // namespace

const std::vector<TableHelp>& config_tables() {
  static const std::vector<TableHelp> tables{
      {"run", "What this run is called, where it writes and when it ends."},
      {"model",
       "The transformer. Needed: a preset, or init.from, or layers, hidden, heads and context."},
      {"lora",
       "Adapters of low rank: a few parameters are trained beside a model that stays as it is."},
      {"init", "Weights from which a new run begins."},
      {"mesh", "How the ranks form replicas of a p x q x r cuboid."},
      {"data", "Which texts are read."},
      {"batch", "How much of them is read per step."},
      {"precision", "Number types and operators."},
      {"optimizer", "How the weights are updated."},
      {"schedule", "The learning rate over the run."},
      {"aggregate", "How the gradients of the replicas become one."},
      {"hetero", "How fast the ranks are when the run begins."},
      {"balance", "How the run reacts to unequal ranks."},
      {"emulate", "Unequal ranks on equal cores, for tests and demonstrations."},
      {"checkpoint", "When checkpoints are written, and from which one a run continues."},
      {"eval", "Validation during training."},
      {"log", "What is shown and kept."},
      {"debug", "Checks and limits."}};
  return tables;
}

const std::vector<Key>& config_keys() {
  static const std::vector<Key> all = [] {
    std::vector<Key> keys;
    run_keys(keys);
    model_keys(keys);
    lora_keys(keys);
    init_keys(keys);
    mesh_keys(keys);
    data_keys(keys);
    batch_and_precision_keys(keys);
    optimizer_keys(keys);
    schedule_keys(keys);
    aggregate_keys(keys);
    balance_keys(keys);
    checkpoint_keys(keys);
    eval_log_and_debug_keys(keys);
    return keys;
  }();
  return all;
}

const Key* find_key(const std::string& full_name) {
  static const std::map<std::string, const Key*> by_name = [] {
    std::map<std::string, const Key*> names;
    for (const Key& key : config_keys()) {
      names.emplace(key.full_name(), &key);
      if (!key.old_name.empty()) names.emplace(key.old_name, &key);
    }
    return names;
  }();
  const auto found = by_name.find(full_name);
  return found == by_name.end() ? nullptr : found->second;
}

std::string_view why_removed(const std::string& full_name) {
  constexpr std::string_view kNoRule = "the rule lbbsp_numeric is no longer there";
  static const std::map<std::string, std::string_view> removed{
      {"balance.predictor", "speeds are measured, and none is predicted"},
      {"balance.coarse_step", kNoRule},
      {"balance.coarse_window", kNoRule},
      {"balance.fine_window", kNoRule}};
  const auto found = removed.find(full_name);
  return found == removed.end() ? std::string_view{} : found->second;
}

std::vector<const Key*> keys_of(const std::string& table) {
  std::vector<const Key*> keys;
  for (const Key& key : config_keys()) {
    if (key.table == table) keys.push_back(&key);
  }
  return keys;
}

}  // namespace t3d
