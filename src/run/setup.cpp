#include "run/setup.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "comm/agree.hpp"
#include "comm/placement.hpp"
#include "config/data_lists.hpp"
#include "config/defaults.hpp"
#include "config/model_text.hpp"
#include "core/counted.hpp"
#include "device/host_limits.hpp"
#include "io/checkpoint/checkpoint_glance.hpp"
#include "io/checkpoint/checkpoint_state.hpp"
#include "io/posix_file.hpp"
#include "run/data_files.hpp"
#include "run/init_weights.hpp"
#include "run/kept_input.hpp"
#include "train/step/state_parts.hpp"

namespace t3d {

void all_or_none(Communicator& world, const std::function<void()>& work) {
  std::optional<Error> fault;
  try {
    work();
  } catch (const std::exception& error) {
    fault = as_error(error);
  }
  agree(world, fault);
}

std::optional<CheckpointInfo> continued_by(const Config& config) {
  const CheckpointConfig& checkpoint = config.checkpoint;
  if (checkpoint.restart == "never") return std::nullopt;
  if (checkpoint.restart != "auto" && holds_checkpoints(checkpoint.restart))
    return newest_checkpoint(checkpoint.restart);
  if (checkpoint.restart != "auto")
    return CheckpointInfo{checkpoint.restart, read_checkpoint_state(checkpoint.restart)};
  const auto newest = newest_published(checkpoint.dir);
  if (!newest) return std::nullopt;
  return CheckpointInfo{newest->path, read_checkpoint_state(newest->path)};
}

namespace {

/// The model that an input need not write out: of the checkpoint that will be continued, else of
/// what init.from names. What cannot be read is a fault only where the input leaves keys out, or
/// when the weights are wanted.
struct BaseModel {
  std::string text, fault, hint;  // any may be empty
};

BaseModel base_of_run(const Config& glance) {
  try {
    const auto info = continued_by(glance);
    if (info && !info->state.texts.contains(kWeightsOnlyText))
      return {model_text(model_of_input(input_of(*info))), "", ""};
  } catch (const Error&) {  // told when the run looks for its checkpoint
  }
  return {};
}

BaseModel find_base(Communicator& world, const Config& glance) {
  if (glance.init.from.empty()) return {};
  BaseModel base;
  if (world.rank() == 0) base = base_of_run(glance);
  base.text = broadcast_text(world, base.text);
  if (!base.text.empty()) return base;
  try {
    const InitSource source = find_init_source(world, glance.init.from);
    all_or_none(world, [&] {
      if (world.rank() == 0) base.text = model_text(model_of(source));
    });
  } catch (const AgreedError& error) {
    const std::string what = error.what();
    const std::size_t cut = what.find("; ");  // find_init_source() gives a hint
    base.fault = what.substr(0, cut);
    if (cut != std::string::npos) base.hint = what.substr(cut + 2);
  }
  base.text = broadcast_text(world, base.text);
  return base;
}

/// `more`: faults that rank 0 alone looks for.
Config parse_with(const BaseModel& base, const std::string& text, const std::string& path,
                  const std::vector<std::string>& overrides, Origins& origins,
                  decltype(InputWorld::more) more) {
  InputWorld outside;
  ModelConfig model;
  if (!base.text.empty()) {
    model = model_of_input(base.text);
    outside.base = &model;
  }
  outside.init = {{}, base.fault, base.hint};
  outside.more = std::move(more);
  return parse_config(text, path, overrides, &origins, outside);
}

/// `path`: for messages and for the default of run.name.
Config checked_input(Communicator& world, const std::string& text, const std::string& path,
                     const std::vector<std::string>& overrides, int ranks, Origins& origins,
                     DataFiles data) {
  const BaseModel base = find_base(world, glance_at_input(text, path, overrides));
  Config config;
  all_or_none(world, [&] {
    decltype(InputWorld::more) more;
    std::size_t missing = 0;
    if (data == DataFiles::read && world.rank() == 0)
      more = [&](const Config& read, const Origins& places) {
        std::vector<Fault> faults = missing_data_files(read, places, path);
        missing = faults.size();
        return faults;
      };
    try {
      config = parse_with(base, text, path, overrides, origins, std::move(more));
    } catch (const ConfigErrors& errors) {
      // Nothing but files is wrong: then that is what the exit code says.
      if (missing == 0 || errors.faults().size() > missing) throw;
      throw_error(ExitCode::no_input, "{}", errors.what());
    }
    if (ranks > 0) check_against_ranks(config, ranks, origins);
  });
  return config;
}

}  // namespace

Config load_input(Communicator& world, const std::string& path,
                  const std::vector<std::string>& overrides, int ranks, Origins& origins,
                  DataFiles data, AcceptedInput* accepted) {
  std::string command = path;
  for (const std::string& word : overrides) command += '\n' + word;
  std::string text;
  all_or_none(world, [&] {
    try {
      if (world.rank() == 0) text = read_input(path);
    } catch (const std::exception& error) {
      throw on_this_rank(world, as_error(error));
    }
  });
  text = broadcast_text(world, text);
  const std::string first = broadcast_text(world, command);
  all_or_none(world, [&] {
    if (command != first)
      throw_error(ExitCode::config,
                  "the command line of rank {} (node {}) names another input or other options and "
                  "is not that of rank 0",
                  world.rank(), host_name());
  });
  if (accepted != nullptr) *accepted = {text, ""};
  try {
    return checked_input(world, text, path, overrides, ranks, origins, data);
  } catch (const AgreedError& fault) {
    if (accepted == nullptr) throw;
    std::string kept;
    if (world.rank() == 0) kept = kept_input(path, text, overrides).value_or("");
    kept = broadcast_text(world, kept);
    if (kept.empty() || kept == text) throw;
    *accepted = {kept, fault.what()};
    try {
      return checked_input(world, kept, path, overrides, ranks, origins = {}, data);
    } catch (const AgreedError&) {
      throw AgreedError(fault);  // what the user can mend
    }
  }
}

namespace {

void take_vocab(const TokenSource& tokens, Config& config) {
  if (config.model.vocab == 0) config.model.vocab = tokens.vocab();
  if (config.model.vocab == 0)
    throw_error(ExitCode::config, "model.vocab is not given and {} does not say it",
                tokens.describe());
  if (tokens.vocab() > config.model.vocab)
    throw_error(ExitCode::config, "model.vocab = {} is smaller than that of {}", config.model.vocab,
                tokens.describe());
}

}  // namespace

std::shared_ptr<BatchSource> open_corpus(std::vector<TokenCard> cards, Config& config,
                                         bool shuffle) {
  std::shared_ptr<TokenSource> tokens = make_token_source(std::move(cards), config.model.vocab);
  take_vocab(*tokens, config);
  return std::make_shared<BatchSource>(std::move(tokens), config.model.context,
                                       static_cast<std::uint64_t>(config.run.seed), shuffle,
                                       static_cast<std::int32_t>(config.data.ignore_token));
}

std::shared_ptr<BatchSource> open_mixture(std::vector<std::vector<TokenCard>> cards,
                                          Config& config) {
  const DataConfig& data = config.data;
  std::vector<MixturePart> parts;
  for (std::size_t at = 0; at < cards.size(); ++at)
    parts.push_back({make_token_source(std::move(cards[at]), config.model.vocab),
                     data.sources[at].weight, source_name(data, at)});
  auto source =
      std::make_shared<BatchSource>(std::move(parts), config.model.vocab, config.model.context,
                                    static_cast<std::uint64_t>(config.run.seed), data.shuffle,
                                    static_cast<std::int32_t>(data.ignore_token));
  take_vocab(source->tokens(), config);
  return source;
}

MachineOptions machine_options(const Config& config) {
  MachineOptions options;
  options.device = config.mesh.device;
  options.transport = config.mesh.transport;
  options.precision = config.precision;
  options.threads = config.debug.threads;
  options.watchdog_seconds = config.debug.watchdog_seconds;
  options.engines_folder = config.run.dir + "/engines";
  return options;
}

PlanFacts plan_facts(const Machine& machine) {
  return {machine.world().size(), machine.choice().transport, machine.has_gpus()};
}

TrainOptions train_options(const Config& config, int ranks) {
  TrainOptions options;
  options.optimizer = config.optimizer;
  options.schedule = config.schedule;
  options.length = {config.run.steps, config.run.tokens};
  options.seed = static_cast<std::uint64_t>(config.run.seed);
  options.loss_scale = config.precision.loss_scale;
  options.check_finite = config.debug.check_finite;
  options.graphs = config.debug.graphs;
  options.times_every = config.balance.every;
  options.slowdown = {config.emulate.slowdown, config.emulate.schedule, ranks};
  return options;
}

std::string placement_warning(Communicator& world) {
  const std::vector<int> nodes = node_of_ranks(world);
  const auto here =
      std::count(nodes.begin(), nodes.end(), nodes[static_cast<std::size_t>(world.rank())]);
  if (here <= cores_available() || yields_when_idle()) return {};
  return fmt::format(
      "{} share {} and Open MPI does not yield: set OMPI_MCA_mpi_yield_when_idle=1, or "
      "start-up and ending become hundreds of times slower",
      counted(here, "rank"), counted(cores_available(), "core"));
}

namespace {

/// Sequences at once where nobody says how many.
constexpr int kEvaluated = 8;

[[noreturn]] void no_checkpoint_in(const std::string& path) {
  throw_error(ExitCode::no_input, "{}",
              path_exists(path + "/config.json")
                  ? fmt::format("{} is a model in Hugging Face's format: \"transformer3d import {} "
                                "-o DIR\" makes a checkpoint of it in DIR",
                                path, path)
                  : fmt::format("there is no checkpoint in {}", path));
}

// A run folder holds ckpt/, which holds step-*/.
std::string checkpoint_folder(const std::string& path) {
  const std::filesystem::path given(path);
  if (!std::filesystem::exists(given)) throw_error(ExitCode::no_input, "there is no {}", path);
  if (!std::filesystem::is_directory(given))
    throw_error(ExitCode::no_input, "{} is a file, and a checkpoint is a folder", path);
  return std::filesystem::is_directory(given / "ckpt") ? (given / "ckpt").string() : path;
}

}  // namespace

bool holds_checkpoints(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored) && !path_exists(path + "/MANIFEST.json");
}

CheckpointInfo newest_checkpoint(const std::string& path) {
  const std::string folder = checkpoint_folder(path);
  if (path_exists(folder + "/MANIFEST.json")) return {folder, read_checkpoint_state(folder)};
  const auto newest = newest_published(folder);
  if (!newest) no_checkpoint_in(path);
  return {newest->path, read_checkpoint_state(newest->path)};
}

CheckpointInfo find_any_checkpoint(Communicator& world, const std::string& path) {
  std::string folder;
  all_or_none(world, [&] { folder = checkpoint_folder(path); });
  if (std::filesystem::exists(std::filesystem::path(folder) / "MANIFEST.json"))
    return open_checkpoint(world, folder);
  const auto found = find_checkpoint(world, folder, [](const std::string& text) {
    fmt::print(stderr, "transformer3d: {}\n", text);
  });
  if (!found) all_or_none(world, [&] { no_checkpoint_in(path); });
  return *found;
}

const std::string& input_of(const CheckpointInfo& checkpoint) {
  const auto input = checkpoint.state.texts.find("input");
  if (input == checkpoint.state.texts.end())
    throw_error(ExitCode::io, "{} holds no input", checkpoint.path);
  return input->second;
}

LoadedModel load_model(Communicator& world, const std::string& path,
                       const std::vector<std::string>& overrides, index_t sequences) {
  LoadedModel loaded;
  loaded.checkpoint = find_any_checkpoint(world, path);
  const CheckpointInfo& found = loaded.checkpoint;
  all_or_none(world, [&] {
    // Any mesh can read: the run's own shape, and what is said rank by rank, give way to what this
    // job has, unless asked for.
    std::vector<std::string> all{
        "mesh.replicas=1",     "mesh.cuboid=auto",      "mesh.cuboids=[]",
        "mesh.tokens=[]",      "mesh.outputs=[]",       "mesh.contractions=[]",
        "mesh.place=[]",       "mesh.device=auto",      "mesh.transport=auto",
        "batch.shares=[]",     "aggregate.method=mean", "emulate.slowdown=[]",
        "emulate.schedule=[]", "emulate.memory_mib=[]"};
    // An imported model has no run, whose input would say these.
    if (found.state.texts.contains(kWeightsOnlyText))
      all.insert(all.end(),
                 {"run.steps=1", "data.train=['-']",
                  fmt::format("batch.sequences={}", std::max(kEvaluated, world.size()))});
    if (sequences > 0) {
      all.push_back(fmt::format("batch.sequences={}", sequences));
      all.emplace_back("batch.micro=0");
    }
    all.insert(all.end(), overrides.begin(), overrides.end());
    loaded.config = parse_config(input_of(found), found.path + " (input)", all);
    check_against_ranks(loaded.config, world.size());
  });
  loaded.machine = std::make_unique<Machine>(world, machine_options(loaded.config));
  Plan plan;
  all_or_none(world, [&] {
    plan = make_plan(loaded.config, plan_facts(*loaded.machine));
    if (const index_t idle = plan.ranks - plan.mesh().ranks(); idle > 0)
      throw_error(ExitCode::config,
                  "mesh.replicas = {} leaves {} of {} ranks idle, which only a training may; start "
                  "{} ranks, or leave mesh.replicas out",
                  loaded.config.mesh.replicas, idle, plan.ranks, plan.mesh().ranks());
  });
  loaded.formation = std::make_unique<Formation>(*loaded.machine, plan, loaded.config.optimizer);
  Transformer& model = loaded.formation->model();
  model.allocate();
  HostImage image(loaded.formation->context());
  std::vector<TensorPart> parts = weight_parts(model, image);
  if (found.state.texts.contains(kWeightsOnlyText))  // of whatever number format
    read_together(world, [&] {
      fill_weights({false, found.path}, needs_of(loaded.config.model, false), parts);
    });
  else
    load_checkpoint(world, found.path, parts);
  image.upload();
  model.weights_changed();
  return loaded;
}

}  // namespace t3d
