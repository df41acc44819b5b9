#include "app/commands/setup.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "comm/placement.hpp"
#include "comm/agree.hpp"
#include "train/step/state_parts.hpp"

namespace t3d {

void all_or_none(Communicator& world, const std::function<void()>& work) {
  std::optional<Error> fault;
  try {
    work();
  } catch (const Error& error) {
    fault = error;
  } catch (const std::exception& error) {
    fault = Error(ExitCode::internal, error.what());
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
                                       static_cast<std::uint64_t>(config.run.seed), shuffle);
}

MeshShape mesh_shape(const Config& config) {
  const MeshConfig& mesh = config.mesh;
  std::vector<Cuboid> cuboids(static_cast<std::size_t>(mesh.replicas), mesh.cuboid);
  for (std::size_t at = 0; at < mesh.cuboids.size(); ++at)
    cuboids[at / 3][at % 3] = mesh.cuboids[at];
  return MeshShape(std::move(cuboids), mesh.place);
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
  double rate = 0;     // flops per second of all ranks, at best
  double seconds = 0;  // of one product, on the slowest rank
};

// Products of size^3, all ranks at once. The best of several short windows: other programs only
// ever make it slower.
Products measure_products(const Context& context, index_t size) {
  constexpr double kSeconds = 0.03;
  const auto make = [&] {
    Tensor x = context.make(context.activation, size, size, MemoryKind::workspace);
    context.ops.random_init(context.queue, x, {1, 1}, 0, 0, size, 1.0);
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
    for (index_t n = 0; n < repeats; ++n) context.ops.gemm(context.queue, args);
    context.queue.synchronize();
    return PhaseClock::now() - start;
  };
  (void)timed(1);
  Products result;
  const double once = std::min({timed(1), timed(1), timed(1)});
  const auto repeats = std::max<index_t>(1, static_cast<index_t>(kSeconds / once));
  for (int window = 0; window < 5; ++window) {
    context.control.barrier();
    double rate = 2.0 * static_cast<double>(size * size * size * repeats) / timed(repeats);
    context.control.all_reduce({&rate, DType::f64, 1, 1}, ReduceOp::sum).wait_host();
    result.rate = std::max(result.rate, rate);
  }
  result.seconds = once;
  context.control.all_reduce({&result.seconds, DType::f64, 1, 1}, ReduceOp::max).wait_host();
  return result;
}

}  // namespace

double measure_gemm_rate(Machine& machine) {
  if (machine.ops().name() == "reference") return 0;
  // Large enough that a product takes milliseconds, whatever computes.
  constexpr double kLongEnough = 2e-3;
  constexpr index_t kLargest = 8192;
  double rate = 0, seconds = 0;
  for (index_t size = 96; size <= kLargest && seconds < kLongEnough; size *= 2) {
    const auto [best, longest] = measure_products(machine.context(), size);
    rate = std::max(rate, best);
    seconds = longest;
  }
  machine.device().trim();  // what was measured with is not the model's memory
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
    // Any mesh can read: the run's own shape gives way to what this job has, unless asked for.
    std::vector<std::string> all{"mesh.replicas=1", "mesh.cuboid=auto",     "mesh.cuboids=[]",
                                 "mesh.tokens=[]",  "mesh.outputs=[]",      "mesh.contractions=[]",
                                 "mesh.place=[]",   "mesh.device=auto",     "mesh.transport=auto",
                                 "batch.shares=[]", "aggregate.method=mean"};
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
  loaded.machine = std::make_unique<Machine>(world, loaded.config, mesh_shape(loaded.config));
  const Context& context = loaded.machine->context();
  all_or_none(world, [&] {
    loaded.model = std::make_unique<Transformer>(
        context,
        ModelShape(loaded.config.model, loaded.config.mesh, context.mesh.shape(),
                   largest_micro(loaded.config)),
        false);
  });
  HostImage image(context);
  std::vector<TensorPart> parts = weight_parts(loaded.model->buckets(), image);
  load_checkpoint(world, found->path, parts);
  image.upload();
  loaded.model->weights_changed();
  return loaded;
}

}  // namespace t3d
