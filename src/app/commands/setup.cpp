#include "app/commands/setup.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "app/config/defaults.hpp"
#include "comm/agree.hpp"
#include "comm/placement.hpp"
#include "core/random.hpp"
#include "device/host_limits.hpp"
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

Config load_input(Communicator& world, const std::string& path,
                  const std::vector<std::string>& overrides, int ranks, Origins& origins) {
  Config config;
  all_or_none(world, [&] {
    config = load_config(path, overrides, &origins);
    check_against_ranks(config, ranks, origins);
  });
  const std::uint64_t own = stream_of(resolved_text(config, origins));
  std::uint64_t first = own;
  world.broadcast({&first, DType::i32, 1, 2}, 0).wait_host();
  all_or_none(world, [&] {
    if (own != first)
      throw_error(ExitCode::config, "{} on rank {} (node {}) is not that of rank 0", path,
                  world.rank(), host_name());
  });
  return config;
}

std::shared_ptr<BatchSource> open_corpus(const std::vector<std::string>& files, Config& config,
                                         bool shuffle) {
  std::shared_ptr<TokenSource> tokens =
      make_token_source(files, config.data.format, config.model.vocab);
  if (config.model.vocab == 0) config.model.vocab = tokens->vocab();
  if (config.model.vocab == 0)
    throw_error(ExitCode::config, "model.vocab is not given and {} does not say it",
                tokens->describe());
  if (tokens->vocab() > config.model.vocab)
    throw_error(ExitCode::config, "model.vocab = {} is smaller than that of {}", config.model.vocab,
                tokens->describe());
  return std::make_shared<BatchSource>(std::move(tokens), config.model.context,
                                       static_cast<std::uint64_t>(config.run.seed), shuffle,
                                       static_cast<std::int32_t>(config.data.ignore_token));
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
  if (config.balance.kind != BalanceKind::off) options.predictor = config.balance.predictor;
  options.slowdown = {config.emulate.slowdown, config.emulate.schedule, ranks};
  return options;
}

std::string placement_warning(Communicator& world) {
  const std::vector<int> nodes = node_of_ranks(world);
  const auto here =
      std::count(nodes.begin(), nodes.end(), nodes[static_cast<std::size_t>(world.rank())]);
  if (here <= cores_available() || yields_when_idle()) return {};
  return fmt::format(
      "{} ranks share {} cores and Open MPI does not yield: set OMPI_MCA_mpi_yield_when_idle=1, or "
      "start-up and ending become hundreds of times slower",
      here, cores_available());
}

namespace {

struct Products {
  double rate = 0;     // flops per second of all ranks together, at best
  double seconds = 0;  // of one product, on the slowest rank
};

// Products of size^3, all ranks at once. The best of several short windows: other programs only
// ever make it slower.
Products measure_products(Machine& machine, DType type, index_t size) {
  constexpr double kSeconds = 0.03;
  const auto make = [&] {
    Tensor x(machine.device(), type, size, size, MemoryKind::workspace);
    machine.ops().random_init(machine.queue(), x, {1, 1}, 0, 0, size, 1.0);
    return x;
  };
  const Tensor a = make();
  const Tensor b = make();
  const Tensor c = make();
  GemmArgs args;
  args.a = a;
  args.b = b;
  args.c = c;
  args.transpose_b = true;
  const auto timed = [&](index_t repeats) {
    const double start = PhaseClock::now();
    for (index_t n = 0; n < repeats; ++n) machine.ops().gemm(machine.queue(), args);
    machine.queue().synchronize();
    return PhaseClock::now() - start;
  };
  (void)timed(1);
  Products result;
  const std::array<double, 3> once{timed(1), timed(1), timed(1)};
  // By the longest: on a busy machine most products take a hundred times as long as the shortest.
  const double longest = *std::max_element(once.begin(), once.end());
  const auto repeats = std::max<index_t>(1, static_cast<index_t>(kSeconds / longest));
  double flops = 2.0 * static_cast<double>(size * size * size * repeats);
  machine.world().all_reduce({&flops, DType::f64, 1, 1}, ReduceOp::sum).wait_host();
  double spent = 0;
  for (int window = 0; window < 5 && spent < 10 * kSeconds; ++window) {
    // From the first rank's start to the last one's end: where ranks share cores they take turns.
    machine.world().barrier();
    const double start = PhaseClock::now();
    (void)timed(repeats);
    machine.world().barrier();
    double seconds = PhaseClock::now() - start;
    machine.world().all_reduce({&seconds, DType::f64, 1, 1}, ReduceOp::max).wait_host();
    result.rate = std::max(result.rate, flops / seconds);
    spent += seconds;
  }
  result.seconds = *std::min_element(once.begin(), once.end());
  machine.world().all_reduce({&result.seconds, DType::f64, 1, 1}, ReduceOp::max).wait_host();
  return result;
}

}  // namespace

double measure_gemm_rate(Machine& machine, DType type) {
  if (machine.ops().name() == "reference") return 0;
  // Large enough that a product takes milliseconds, whatever computes. On a busy machine a small
  // one takes that long too, as its threads wait for cores.
  constexpr double kLongEnough = 2e-3, kLong = 5e-2;
  constexpr index_t kSmall = 384, kLargest = 8192;
  double rate = 0, seconds = 0;
  const auto larger = [&](index_t size) { return seconds < (size > kSmall ? kLongEnough : kLong); };
  for (index_t size = 96; size <= kLargest && larger(size); size *= 2) {
    const auto [best, longest] = measure_products(machine, type, size);
    rate = std::max(rate, best);
    seconds = longest;
  }
  machine.device().trim();  // what was measured with is not the model's memory
  machine.device().restart_peaks();
  return rate;
}

namespace {

// A run folder holds ckpt/, which holds step-*/.
std::string checkpoint_folder(const std::string& path) {
  const std::filesystem::path given(path);
  if (!std::filesystem::exists(given)) throw_error(ExitCode::no_input, "there is no {}", path);
  return std::filesystem::is_directory(given / "ckpt") ? (given / "ckpt").string() : path;
}

std::optional<CheckpointInfo> find(Communicator& world, const std::string& path) {
  std::string folder;
  all_or_none(world, [&] { folder = checkpoint_folder(path); });
  if (std::filesystem::exists(std::filesystem::path(folder) / "MANIFEST.json"))
    return open_checkpoint(world, folder);
  return find_checkpoint(world, folder, [](const std::string& text) {
    fmt::print(stderr, "transformer3d: {}\n", text);
  });
}

}  // namespace

LoadedModel load_model(Communicator& world, const std::string& path,
                       const std::vector<std::string>& overrides, index_t sequences) {
  LoadedModel loaded;
  const std::optional<CheckpointInfo> found = find(world, path);
  all_or_none(world, [&] {
    if (!found) throw_error(ExitCode::no_input, "there is no checkpoint in {}", path);
    loaded.checkpoint = *found;
    // Any mesh can read: the run's own shape, and what is said rank by rank, give way to what this
    // job has, unless asked for.
    std::vector<std::string> all{
        "mesh.replicas=1",     "mesh.cuboid=auto",      "mesh.cuboids=[]",
        "mesh.tokens=[]",      "mesh.outputs=[]",       "mesh.contractions=[]",
        "mesh.place=[]",       "mesh.device=auto",      "mesh.transport=auto",
        "batch.shares=[]",     "aggregate.method=mean", "emulate.slowdown=[]",
        "emulate.schedule=[]", "emulate.memory_mib=[]"};
    if (sequences > 0) {
      all.push_back(fmt::format("batch.sequences={}", sequences));
      all.emplace_back("batch.micro=0");
    }
    all.insert(all.end(), overrides.begin(), overrides.end());
    const auto input = found->state.texts.find("input");
    if (input == found->state.texts.end())
      throw_error(ExitCode::io, "{} holds no input", found->path);
    loaded.config = parse_config(input->second, found->path + " (input)", all);
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
  load_checkpoint(world, found->path, parts);
  image.upload();
  model.weights_changed();
  return loaded;
}

}  // namespace t3d
