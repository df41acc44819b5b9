#include "train/machine.hpp"

#include <algorithm>
#include <optional>

#include "comm/placement.hpp"
#include "comm/registry.hpp"
#include "comm/staged/staged.hpp"
#include "core/error.hpp"
#include "comm/agree.hpp"
#include "ops/registry.hpp"

namespace t3d {
namespace {

/// `threads`: where the input leaves it open.
std::unique_ptr<Ops> host_ops(const Config& config, DType activation, int threads) {
  const BackendRule backend = config.precision.backend;
  if (backend == BackendRule::reference ||
      (backend == BackendRule::automatic && activation == DType::f64))
    return make_reference_ops();
  if (config.debug.threads != 0) threads = config.debug.threads;
  if (config.precision.matmul == MatmulType::fp8)
    throw_error(ExitCode::config, "precision.matmul = \"fp8\" needs a GPU");
  auto ops = make_cpu_ops(threads);
  if (!ops->supports(activation))
    throw_error(ExitCode::config,
                "precision.compute = \"{}\" needs a GPU (mesh.device = \"cuda\") or "
                "precision.backend = \"reference\"",
                word_of(config.precision.compute));
  return ops;
}

/// Cores of the node shared by its ranks. Collective.
int fair_share_of_cores(Communicator& world) {
  const std::vector<int> nodes = node_of_ranks(world);
  const auto here =
      std::count(nodes.begin(), nodes.end(), nodes[static_cast<std::size_t>(world.rank())]);
  return std::max(1, cores_available() / static_cast<int>(here));
}

Backend gpu_backend(const Config& config, int gpu, int rank) {
  EngineOptions options;
  options.gemm = config.precision.gemm_engine;
  options.attention = config.precision.attention_engine;
  options.tf32 = config.precision.compute == ComputeType::tf32;
  options.fp8 = config.precision.matmul == MatmulType::fp8;
  options.tune = config.precision.tune;
  options.cache_file = choices_file(config, rank);
  return make_cuda_backend(gpu, options);
}

bool reduce_in_fp32(const Config& config, const MeshShape& shape, DType activation) {
  if (config.precision.reduce == ReduceType::fp32) return true;
  if (config.precision.reduce == ReduceType::compute || !is_half(activation)) return false;
  // Each low-precision addend is rounded once more: harmless for few ranks (tensor3d, section 5).
  return std::max(shape.extent(Axis::j), shape.extent(Axis::k)) > 4;
}

}  // namespace

namespace {

// Every chunk of logits reads and writes the gradient of the head's weight once, and a GPU's
// products are fast beside its memory: few, large ones.
constexpr index_t kGpuLogitsBytes = index_t{1} << 30;

}  // namespace

std::string choices_file(const Config& config, int rank) {
  return fmt::format("{}/engines/rank-{}.txt", config.run.dir, rank);
}

DType compute_dtype(const PrecisionConfig& precision) {
  return precision.compute == ComputeType::bf16   ? DType::bf16
         : precision.compute == ComputeType::fp16 ? DType::f16
         : precision.compute == ComputeType::fp64 ? DType::f64
                                       : DType::f32;
}

std::vector<index_t> ReplicaShare::micro() const {
  std::vector<index_t> all;
  for (const LeafShare& leaf : leaves) all.insert(all.end(), leaf.micro.begin(), leaf.micro.end());
  return all;
}

index_t leaves_per_replica(const Config& config) {
  return config.aggregate.method == AggregateMethod::adasum ? config.aggregate.leaves : 1;
}

double reference_batch(const Config& config) {
  if (config.aggregate.reference_batch > 0) return config.aggregate.reference_batch;
  return static_cast<double>(config.batch.sequences) /
         static_cast<double>(config.mesh.replicas * leaves_per_replica(config));
}

ReplicaShare replica_share(const Config& config, index_t replica) {
  const BatchConfig& batch = config.batch;
  const Partition split = batch.shares.empty()
                              ? Partition::even("batch", batch.sequences, config.mesh.replicas)
                              : Partition::weighted("batch", batch.sequences, batch.shares);
  ReplicaShare share{split.begin(replica), split.size(replica), {}};
  const Partition leaves = Partition::even("leaves", share.sequences, leaves_per_replica(config));
  for (const index_t sequences : leaves.sizes()) {
    LeafShare leaf{sequences, {}};
    const index_t micro = batch.micro > 0 ? batch.micro : sequences;
    if (sequences > 0)
      leaf.micro = Partition::even("micro", sequences, (sequences + micro - 1) / micro).sizes();
    share.leaves.push_back(std::move(leaf));
  }
  return share;
}

index_t largest_micro(const Config& config) {
  index_t largest = 1;
  for (index_t replica = 0; replica < config.mesh.replicas; ++replica)
    for (const index_t micro : replica_share(config, replica).micro())
      largest = std::max(largest, micro);
  return largest;
}

KeepCost keep_cost(const ModelShape& shape, const Coord& coord, DType activation,
                   index_t micro_sequences, bool recompute) {
  const ModelConfig& m = shape.model;
  const index_t size = size_of(activation);
  const index_t hidden = shape.hidden.size(coord.k);
  const index_t heads = shape.groups.size(coord.j) * shape.query_heads_per_group() * m.head_size();
  const index_t kv = shape.groups.size(coord.j) * 2 * m.head_size();
  const index_t ffn = shape.ffn.size(coord.j);
  const index_t up = m.activation == Activation::swiglu ? 2 * ffn : ffn;
  KeepCost cost;
  if (shape.slabs > 1 || activation != accumulator_of(activation))
    cost.weights_bytes = (m.layers * hidden * (2 * heads + kv + up + ffn) +
                          (m.tied_embeddings ? 1 : 2) * shape.vocab.size(coord.j) * hidden) *
                         size;
  const index_t rows = shape.tokens(micro_sequences, m.context).size(coord.i);
  const index_t blocks = recompute ? 1 : m.layers;
  if (shape.q > 1) cost.inputs_bytes += blocks * rows * 2 * hidden * size;
  if (shape.r > 1) cost.inputs_bytes += blocks * rows * (heads + ffn) * size;
  return cost;
}

Machine::Machine(Communicator& world, const Config& config, const MeshShape& shape, bool dry) {
  const DType activation = compute_dtype(config.precision);
  if (!dry) choice_ = choose_device(world, config.mesh);
  const int threads = dry ? 1 : fair_share_of_cores(world);
  std::optional<Error> fault;
  Backend backend;
  attempt(fault, [&] {
    backend = dry ? Backend{make_dry_device(), make_dry_ops()}
              : choice_.gpu >= 0
                  ? gpu_backend(config, choice_.gpu, world.rank())
                  : Backend{make_cpu_device(), host_ops(config, activation, threads)};
  });
  agree(world, fault);
  device_ = std::move(backend.device);
  ops_ = std::move(backend.ops);
  queue_ = device_->make_queue();
  if (choice_.gpu >= 0)
    device_world_ = choice_.nccl ? make_gpu_world(world, *device_, *queue_)
                                 : make_staged_communicator(world, *device_, *queue_);
  if (device_world_) device_world_->set_watchdog(config.debug.watchdog_seconds);
  Communicator& data_world = device_world_ ? *device_world_ : world;
  queue_->set_poll([&data_world] { data_world.progress(); });
  mesh_ = std::make_unique<Mesh>(data_world, shape);
  context_ = std::make_unique<Context>(
      Context{*device_, *ops_, *queue_, *mesh_, world, clock_, activation,
              reduce_in_fp32(config, mesh_->shape(), activation), true, true});

  // The same for all ranks: chunks are messages. A dry run goes by the input.
  if (choice_.gpus > 0 || (dry && (config.mesh.device == DeviceRule::cuda || config.mesh.device == DeviceRule::mixed)))
    context_->logits_bytes = kGpuLogitsBytes;

  const MeshShape& own = mesh_->shape();
  const ModelShape model(config.model, config.mesh, own, largest_micro(config));
  const KeepCost cost = keep_cost(model, mesh_->coord(), activation, largest_micro(config),
                                  config.batch.recompute == Recompute::block);
  const double budget = config.mesh.gather_budget_mib * 1048576.0;
  // Weights first: they are gathered again for every micro-batch. Every rank of a cuboid must
  // choose alike, so by the largest part of each dimension.
  KeepCost largest = cost;
  for (index_t i = 0; i < own.extent(Axis::i); ++i)
    for (index_t j = 0; j < own.extent(Axis::j); ++j)
      for (index_t k = 0; k < own.extent(Axis::k); ++k) {
        const KeepCost other = keep_cost(model, {0, i, j, k}, activation, largest_micro(config),
                                         config.batch.recompute == Recompute::block);
        largest.weights_bytes = std::max(largest.weights_bytes, other.weights_bytes);
        largest.inputs_bytes = std::max(largest.inputs_bytes, other.inputs_bytes);
      }
  const auto weights = static_cast<double>(largest.weights_bytes);
  const auto inputs = static_cast<double>(largest.inputs_bytes);
  const bool all = config.mesh.keep == KeepRule::all;
  const bool by_budget = config.mesh.keep == KeepRule::automatic;
  context_->keep_weights = all || (by_budget && weights <= budget);
  context_->keep_inputs =
      all || (by_budget && inputs <= budget - (context_->keep_weights ? weights : 0.0));
}

}  // namespace t3d
