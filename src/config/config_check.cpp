#include "config/config_check.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <numeric>
#include <utility>

#include "config/replan_wish.hpp"
#include "core/utf8.hpp"
#include "tensor3d/frozen.hpp"

namespace t3d {
namespace {

index_t round_up(index_t value, index_t unit) { return (value + unit - 1) / unit * unit; }

std::string stem(const std::string& file_name) {
  std::string name = file_name.substr(file_name.rfind('/') + 1);
  if (name.ends_with(".toml")) name.resize(name.size() - 5);
  return name.empty() ? "run" : name;
}

/// Where to point for a key: where it was given, else the file.
Where place_of(const std::string& key, const Origins& origins, const std::string& file_name) {
  const auto found = origins.find(key);
  return found == origins.end() ? Where{file_name, 0, 0} : found->second;
}

/// Some replica's [p, q, r] is not that of the first.
bool cuboids_differ(const std::vector<int>& cuboids) {
  for (std::size_t at = 3; at < cuboids.size(); ++at)
    if (cuboids[at] != cuboids[at % 3]) return true;
  return false;
}

class CrossCheck {
 public:
  CrossCheck(const Config& config, const Origins& origins, const std::string& file_name,
             const std::set<std::string>& faulty)
      : config_(config), origins_(origins), file_name_(file_name), faulty_(faulty) {}

  std::vector<Fault> all() {
    model();
    trained_part();
    batch_and_length();
    mesh();
    aggregate();
    others();
    return std::move(faults_);
  }

 private:
  /// All of these keys hold values worth comparing.
  [[nodiscard]] bool usable(std::initializer_list<const char*> keys) const {
    return std::none_of(keys.begin(), keys.end(),
                        [&](const char* k) { return faulty_.contains(k); });
  }
  void fault(const char* key, std::string what, std::string hint) {
    faults_.push_back({place_of(key, origins_, file_name_), std::move(what), std::move(hint)});
  }

  void model() {
    const ModelConfig& m = config_.model;
    const bool widths = usable({"model.hidden", "model.heads"});
    if (widths && usable({"model.head_size"}) && m.head_columns == 0 && m.hidden % m.heads != 0) {
      fault(
          "model.hidden",
          fmt::format("model.hidden = {} is not a multiple of model.heads = {}", m.hidden, m.heads),
          fmt::format("the nearest are {} and {}; or write model.head_size",
                      std::max(m.hidden / m.heads, index_t{1}) * m.heads,
                      (m.hidden / m.heads + 1) * m.heads));
    } else if (widths && usable({"model.position"}) && m.position == Position::rope &&
               m.head_size() % 2 != 0) {
      fault("model.position",
            fmt::format("rope needs an even head size, and it is {}", m.head_size()),
            "change model.head_size, or model.hidden or model.heads");
    }
    rope();
    if (usable({"model.heads", "model.kv_heads"}) && m.heads % m.kv_heads != 0) {
      fault("model.kv_heads",
            fmt::format("model.heads = {} is not a multiple of model.kv_heads = {}", m.heads,
                        m.kv_heads),
            "each head of keys and values serves the same number of query heads");
    }
  }

  void trained_part() {
    const LoraOptions& lora = config_.model.lora;
    if (usable({"lora.targets"})) lora_targets(lora);
    if (lora.on() && lora.targets.empty())
      fault("lora.targets", "lora.rank > 0 needs targets", "the usual ones are [\"q\", \"v\"]");
    if (lora.on() && config_.init.grow_vocab)
      fault("init.grow_vocab", "with lora.rank the rows of new tokens would stay random",
            "import --vocab makes a checkpoint with more tokens, which a run without adapters "
            "trains first");
    if (lora.on() && !config_.model.freeze.empty())
      fault("model.freeze", "with lora.rank all parameters but the adapters stay as they are",
            "leave model.freeze out");
    const bool parts = lora.on() || !config_.model.freeze.empty();
    if (config_.optimizer.kind == OptimizerKind::muon && parts)
      fault("optimizer.kind",
            "muon trains all matrices of the blocks; with lora.rank or model.freeze some stay as "
            "they are",
            "optimizer.kind = \"adamw\"");
    if (usable({"model.layers", "model.hidden", "model.heads", "model.kv_heads", "model.ffn",
                "model.freeze"}) &&
        faults_.empty())
      frozen();
  }

  void lora_targets(const LoraOptions& lora) {
    for (const std::string& target : lora.targets) {
      if (std::find(std::begin(kLoraTargets), std::end(kLoraTargets), target) ==
          std::end(kLoraTargets))
        fault("lora.targets", fmt::format("lora.targets has \"{}\"", target),
              "q, k, v, o, gate, up and down are known");
      else if (target == "gate" && lora.on() && config_.model.activation != Activation::swiglu)
        fault("lora.targets", "lora.targets has \"gate\", which only swiglu has", "leave it out");
    }
  }

  // A pattern that means nothing is a slip of the pen.
  void frozen() {
    const ModelConfig& model = config_.model;
    if (model.freeze.empty()) return;
    std::vector<std::string> names = parameter_names(model);
    for (const std::string& pattern : model.freeze)
      if (std::none_of(names.begin(), names.end(),
                       [&](const std::string& name) { return matches(pattern, name); }))
        fault("model.freeze", fmt::format("\"{}\" in model.freeze is no parameter's name", pattern),
              "names are like wte.weight, blocks.0.attn.qkv.weight, blocks.0.norm1.weight; "
              "* stands for any letters");
    if (std::all_of(names.begin(), names.end(),
                    [&](const std::string& name) { return is_frozen(model, name); }))
      fault("model.freeze", "model.freeze leaves nothing to train", "freeze fewer parameters");
  }

  void rope() {
    const RopeOptions& rope = config_.model.rope;
    if (!usable({"model.rope_scaling", "model.position"}) || rope.scaling == RopeScaling::none)
      return;
    if (config_.model.position != Position::rope)
      fault("model.rope_scaling", "model.rope_scaling needs model.position = \"rope\"",
            "leave model.rope_scaling out");
    const bool by_context = rope.scaling != RopeScaling::linear;
    if (by_context && usable({"model.rope_original_context"}) && rope.original_context < 1)
      fault("model.rope_original_context",
            fmt::format("model.rope_scaling = \"{}\" needs model.rope_original_context",
                        rope.scaling),
            "the context for which the model was trained first");
    const auto ordered = [&](const char* low, double low_value, const char* high,
                             double high_value) {
      if (usable({low, high}) && low_value >= high_value)
        fault(high, fmt::format("{} = {} is not above {} = {}", high, high_value, low, low_value),
              "the defaults are right for published models");
    };
    if (rope.scaling == RopeScaling::llama3)
      ordered("model.rope_low_freq_factor", rope.low_freq_factor, "model.rope_high_freq_factor",
              rope.high_freq_factor);
    if (rope.scaling == RopeScaling::yarn)
      ordered("model.rope_beta_slow", rope.beta_slow, "model.rope_beta_fast", rope.beta_fast);
  }

  void batch_and_length() {
    const BatchConfig& batch = config_.batch;
    const index_t replicas = config_.mesh.replicas;
    if (usable({"batch.sequences", "mesh.replicas", "batch.shares"}) && batch.shares.empty()) {
      const index_t share = (batch.sequences + replicas - 1) / replicas;
      if (batch.sequences < replicas) {
        fault("batch.sequences",
              fmt::format("batch.sequences = {} leaves some of {} replicas without work",
                          batch.sequences, replicas),
              fmt::format("at least {}", replicas));
      } else if (usable({"batch.micro"}) && config_.mesh.plan.empty() && batch.micro > share) {
        fault("batch.micro",
              fmt::format("batch.micro = {} is more than a replica's share of {} sequences",
                          batch.micro, share),
              "0 = all at once");
      }
    }
    const bool length = usable({"run.steps", "run.tokens"});
    if (length && config_.run.steps == 0 && config_.run.tokens == 0) {
      fault("run.steps", "the run has no length", "set run.steps or run.tokens");
    } else if (length && usable({"schedule.warmup_steps", "batch.sequences", "model.context"}) &&
               config_.schedule.warmup_steps > 0 &&
               config_.schedule.warmup_steps >= planned_steps(config_)) {
      fault("schedule.warmup_steps",
            fmt::format("schedule.warmup_steps = {} is not below the run's {} steps",
                        config_.schedule.warmup_steps, planned_steps(config_)),
            "");
    }
  }

  void aggregate() {
    const AggregateConfig& a = config_.aggregate;
    const index_t replicas = config_.mesh.replicas;
    if (usable({"batch.shares", "mesh.replicas"}) && !config_.batch.shares.empty()) {
      const std::vector<double>& shares = config_.batch.shares;
      if (static_cast<index_t>(shares.size()) != replicas)
        fault("batch.shares", fmt::format("batch.shares has {} weights", shares.size()),
              fmt::format("mesh.replicas = {} needs one for each replica", replicas));
      else if (std::all_of(shares.begin(), shares.end(), [](double w) { return w == 0; }))
        fault("batch.shares", "no replica has samples: batch.shares are all 0",
              "at least one must be above 0");
    }
    if (!usable({"aggregate.method", "aggregate.placement", "aggregate.algorithm",
                 "aggregate.leaves", "aggregate.wire", "optimizer.kind", "optimizer.clip_norm"}) ||
        a.method != AggregateMethod::adasum)
      return;
    const bool flat = a.algorithm == AggregateAlgorithm::flat;
    if (flat && usable({"mesh.cuboids"}) && cuboids_differ(config_.mesh.cuboids))
      fault("aggregate.algorithm",
            "aggregate.algorithm = \"flat\" needs equal cuboids, and mesh.cuboids differ",
            "\"gram\" or \"auto\"");
    if (flat && a.wire != WireType::fp32)
      fault("aggregate.wire", fmt::format("aggregate.wire = \"{}\" needs algorithm gram", a.wire),
            "\"fp32\"");
    if (flat && a.leaves > 1)
      fault("aggregate.leaves", "aggregate.leaves needs algorithm gram", "leaves = 1");
    if (usable({"mesh.replicas"}) && replicas * a.leaves > kMostLeaves)
      fault("aggregate.leaves",
            fmt::format("{} replicas of {} leaves are more than {} gradients", replicas, a.leaves,
                        kMostLeaves),
            "fewer leaves, or larger cuboids");
    if (usable({"batch.sequences", "batch.shares", "mesh.replicas"}) &&
        config_.batch.shares.empty() && config_.batch.sequences >= replicas &&
        config_.batch.sequences < replicas * a.leaves)
      fault("aggregate.leaves",
            fmt::format("batch.sequences = {} leaves some of {} x {} leaves without samples",
                        config_.batch.sequences, replicas, a.leaves),
            fmt::format("at least {} sequences", replicas * a.leaves));
  }

  void weights(const char* key, const std::vector<double>& list, const char* axis, std::size_t at) {
    if (list.empty() || !usable({key, "mesh.cuboid", "mesh.cuboids"})) return;
    if (!config_.mesh.cuboids.empty()) {
      fault(key, fmt::format("{} does not go with mesh.cuboids, whose parts are even", key),
            "equal cuboids may have widths: mesh.cuboid = [p, q, r]");
    } else if (config_.mesh.cuboid_auto) {
      fault(key, fmt::format("{} needs an explicit mesh.cuboid", key),
            "write mesh.cuboid = [p, q, r]");
    } else if (static_cast<index_t>(list.size()) != config_.mesh.cuboid[at]) {
      fault(key, fmt::format("{} has {} widths", key, list.size()),
            fmt::format("{} = {} needs one for each part", axis, config_.mesh.cuboid[at]));
    } else if (std::all_of(list.begin(), list.end(), [](double w) { return w == 0; })) {
      fault(key, fmt::format("the widths of {} are all 0", key), "at least one must be above 0");
    }
  }

  void cuboids() {
    const MeshConfig& m = config_.mesh;
    if (m.cuboids.empty() || !usable({"mesh.cuboids"})) return;
    if (usable({"mesh.replicas"}) && std::ssize(m.cuboids) != 3 * m.replicas)
      fault("mesh.cuboids", fmt::format("mesh.cuboids has {} numbers", m.cuboids.size()),
            fmt::format("mesh.replicas = {} needs p, q, r for each: {} numbers", m.replicas,
                        3 * m.replicas));
    if (usable({"mesh.cuboid"}) && !m.cuboid_auto)
      fault("mesh.cuboids", "mesh.cuboid and mesh.cuboids are both given", "leave one of them out");
  }

  void mesh() {
    cuboids();
    const MeshConfig& m = config_.mesh;
    if (m.replicas_auto && usable({"mesh.cuboid", "mesh.cuboids"}) &&
        (!m.cuboid_auto || !m.cuboids.empty()))
      fault("mesh.replicas", "mesh.replicas = \"auto\" with a cuboid that is written out",
            "cuboid = \"auto\", or a number of replicas");
    if (m.replicas_auto && usable({"batch.shares"}) && !config_.batch.shares.empty())
      fault("mesh.replicas", "mesh.replicas = \"auto\" and batch.shares are both given",
            "leave one of them out");
    if (m.replicas_auto && usable({"mesh.place"}) && !m.place.empty())
      fault("mesh.replicas", "mesh.replicas = \"auto\" and mesh.place are both given",
            "leave one of them out");
    // The default divides by their number, which may be another one at every start.
    const AggregateMethod method = config_.aggregate.method;
    if (m.replicas_auto && usable({"aggregate.method"}) && method != AggregateMethod::mean &&
        !origins_.contains("aggregate.reference_batch"))
      fault("aggregate.method",
            fmt::format("aggregate.reference_batch must be written where mesh.replicas = \"auto\" "
                        "and aggregate.method = \"{}\"",
                        method),
            "the number of sequences for which optimizer.lr was chosen");
    weights("mesh.tokens", config_.mesh.tokens, "p", 0);
    weights("mesh.outputs", config_.mesh.outputs, "q", 1);
    weights("mesh.contractions", config_.mesh.contractions, "r", 2);
  }

  void others() {
    const PrecisionConfig& precision = config_.precision;
    if (usable({"precision.compute", "precision.backend"}) &&
        precision.compute == ComputeType::fp64 && precision.backend == BackendRule::cpu) {
      fault("precision.backend", "precision.compute = \"fp64\" needs the reference operators",
            "backend = \"reference\" or \"auto\"");
    }
    gpu_precision();
    if (usable({"precision.compute", "precision.matmul"}) && precision.matmul == MatmulType::fp8 &&
        precision.compute != ComputeType::bf16 && precision.compute != ComputeType::fp16) {
      fault("precision.matmul",
            fmt::format("precision.matmul = \"fp8\" needs 16-bit activations, not {}",
                        precision.compute),
            "compute = \"bf16\"");
    }
    if (usable({"hetero.speeds", "hetero.file"}) && config_.hetero.speeds == SpeedSource::file &&
        config_.hetero.file.empty())
      fault("hetero.speeds", "hetero.speeds = \"file\" needs hetero.file",
            "name a file that transformer3d probe --output wrote");
    for (const std::string& wish : config_.debug.replan)
      if (!parse_replan_wish(wish))
        fault(
            "debug.replan",
            fmt::format("debug.replan: \"{}\" is not STEP:FILE or STEP:same", printable(wish, 100)),
            "a step from 1 on, and a plan.toml");
    run_name();
    trace();
    if (usable({"eval.every_steps", "data.valid"}) && config_.eval.every_steps > 0 &&
        config_.data.valid.empty() && config_.data.validations.empty()) {
      fault("eval.every_steps", "eval.every_steps needs data.valid",
            "name token files to validate on");
    }
    if (usable({"log.samples", "data.valid"}) && config_.log.samples > 0 &&
        config_.data.valid.empty() && config_.data.validations.empty())
      fault("log.samples", "log.samples needs data.valid", "name token files to validate on");
    if (!config_.data.train.empty() && !config_.data.sources.empty())
      fault("data.train", "data.train and [[data.source]] exclude each other",
            "write data.train as one more [[data.source]]");
  }

  void run_name() {
    for (const std::filesystem::path& part : std::filesystem::path(config_.run.name))
      if (usable({"run.name"}) && (part == "." || part == "..")) {
        fault("run.name", "the folder of the run would not be one below runs",
              "write a name without . and .., or set run.dir");
        break;
      }
  }

  void trace() {
    const std::vector<int>& steps = config_.debug.trace;
    if (!usable({"debug.trace"}) || steps.empty()) return;
    const std::string example = "for instance [10, 12], or [10, 10] for one step";
    if (steps.size() != 2)
      fault("debug.trace", fmt::format("debug.trace has {} numbers, not 2", steps.size()), example);
    else if (steps[0] > steps[1])
      fault("debug.trace",
            fmt::format("debug.trace: the first step {} comes after the last, {}", steps[0],
                        steps[1]),
            example);
    else if (usable({"run.steps"}) && config_.run.steps > 0 && steps[1] > config_.run.steps)
      fault("debug.trace",
            fmt::format("debug.trace: step {} comes after the end of the run, {}", steps[1],
                        config_.run.steps),
            "write steps up to run.steps");
  }

  // What needs a GPU must not meet mesh.device = DeviceRule::cpu; with "auto" the ranks will say.
  void gpu_precision() {
    if (!usable({"precision.compute", "precision.backend", "precision.matmul", "mesh.device"}))
      return;
    const PrecisionConfig& p = config_.precision;
    const bool on_gpu =
        config_.mesh.device == DeviceRule::cuda || config_.mesh.device == DeviceRule::mixed;
    if (on_gpu && p.backend != BackendRule::automatic)
      fault(
          "precision.backend",
          fmt::format("precision.backend = \"{}\" chooses operators of CPUs, mesh.device is \"{}\"",
                      p.backend, config_.mesh.device),
          "backend = \"auto\"");
    if (on_gpu && p.compute == ComputeType::fp64)
      fault("precision.compute", "precision.compute = \"fp64\" has no GPU kernels",
            "\"fp32\", or mesh.device = \"cpu\"");
    if (config_.mesh.device == DeviceRule::mixed &&
        (p.compute == ComputeType::fp16 || p.compute == ComputeType::tf32))
      fault("precision.compute",
            fmt::format(
                "precision.compute = \"{}\" is not for CPUs, mesh.device = \"mixed\" uses them",
                p.compute),
            "\"bf16\" or \"fp32\"");
    if (config_.mesh.device != DeviceRule::cpu) return;
    if (p.compute == ComputeType::tf32 ||
        (p.compute == ComputeType::fp16 && p.backend != BackendRule::reference))
      fault("precision.compute", fmt::format("precision.compute = \"{}\" needs a GPU", p.compute),
            "\"bf16\" or \"fp32\" on CPUs");
    if (p.matmul == MatmulType::fp8)
      fault("precision.matmul", "precision.matmul = \"fp8\" needs a GPU", "\"compute\"");
  }

  const Config& config_;
  const Origins& origins_;
  const std::string& file_name_;
  const std::set<std::string>& faulty_;
  std::vector<Fault> faults_;
};

}  // namespace

void fill_model_defaults(ModelConfig& model) {
  if (model.kv_heads == 0) model.kv_heads = model.heads;
  if (model.max_context <= model.context) model.max_context = 0;
  // One way to say it, so that runs that mean the same compare as equal.
  if (model.head_columns * model.heads == model.hidden) model.head_columns = 0;
  if (model.ffn == 0) {
    model.ffn = model.activation == Activation::swiglu ? round_up((8 * model.hidden + 2) / 3, 64)
                                                       : 4 * model.hidden;
  }
}

void fill_computed_defaults(Config& config, const std::string& file_name) {
  fill_model_defaults(config.model);
  AggregateConfig& aggregate = config.aggregate;
  const bool sgd = config.optimizer.kind == OptimizerKind::sgd;
  if (aggregate.placement == AggregatePlacement::automatic)
    aggregate.placement = sgd ? AggregatePlacement::pre : AggregatePlacement::gain;
  if (aggregate.algorithm == AggregateAlgorithm::automatic)
    aggregate.algorithm = AggregateAlgorithm::gram;
  if (aggregate.gain_exponent < 0) aggregate.gain_exponent = sgd ? 1 : 0.5;
  if (aggregate.reference_batch <= 0 && config.mesh.replicas > 0) {
    const index_t leaves = aggregate.method == AggregateMethod::adasum ? aggregate.leaves : 1;
    aggregate.reference_batch = static_cast<double>(config.batch.sequences) /
                                static_cast<double>(config.mesh.replicas * leaves);
  }
  if (config.run.name.empty()) config.run.name = stem(file_name);
  if (config.run.dir.empty()) config.run.dir = "runs/" + config.run.name;
  if (config.checkpoint.dir.empty()) config.checkpoint.dir = config.run.dir + "/ckpt";
}

std::vector<Fault> cross_faults(const Config& config, const Origins& origins,
                                const std::string& file_name, const std::set<std::string>& faulty) {
  return CrossCheck(config, origins, file_name, faulty).all();
}

std::vector<std::string> unused_input(const Config& config, int ranks) {
  std::vector<std::string> texts = config.notes;
  const HeteroConfig& hetero = config.hetero;
  if (hetero.file.empty()) return texts;
  if (hetero.speeds != SpeedSource::file)
    texts.push_back(fmt::format("hetero.file is not read: hetero.speeds is \"{}\"", hetero.speeds));
  else if (ranks == 1)
    texts.emplace_back("hetero.file is not read: there is only one rank");
  return texts;
}

index_t planned_steps(const Config& config) {
  if (config.run.tokens <= 0) return config.run.steps;
  const double per_step =
      static_cast<double>(config.batch.sequences) * static_cast<double>(config.model.context);
  const auto by_tokens = static_cast<index_t>(std::ceil(config.run.tokens / per_step));
  return config.run.steps > 0 ? std::min(config.run.steps, by_tokens) : by_tokens;
}

}  // namespace t3d
