#include "train/machine.hpp"

#include <algorithm>
#include <optional>

#include "comm/agree.hpp"
#include "comm/placement.hpp"
#include "comm/registry.hpp"
#include "comm/staged/mixed.hpp"
#include "comm/staged/staged.hpp"
#include "core/error.hpp"
#include "core/plan.hpp"
#include "device/ranges.hpp"
#include "ops/registry.hpp"

namespace t3d {
namespace {

std::unique_ptr<Ops> host_ops(const PrecisionConfig& precision, int threads) {
  const DType activation = activation_of(precision.compute);
  if (precision.backend == BackendRule::reference ||
      (precision.backend == BackendRule::automatic && activation == DType::f64))
    return make_reference_ops();
  if (precision.matmul == MatmulType::fp8)
    throw_error(ExitCode::config, "precision.matmul = \"fp8\" needs a GPU");
  auto ops = make_cpu_ops(threads);
  if (!ops->supports(activation))
    throw_error(ExitCode::config,
                "precision.compute = \"{}\" needs a GPU (mesh.device = \"cuda\") or "
                "precision.backend = \"reference\"",
                precision.compute);
  return ops;
}

Backend gpu_backend(const PrecisionConfig& precision, int gpu, const std::string& cache_file) {
  EngineOptions options;
  options.gemm = precision.gemm_engine;
  options.attention = precision.attention_engine;
  options.tf32 = precision.compute == ComputeType::tf32;
  options.fp8 = precision.matmul == MatmulType::fp8;
  options.tune = precision.tune;
  options.cache_file = cache_file;
  return make_cuda_backend(gpu, options);
}

}  // namespace

Machine::Machine(Communicator& world, const MachineOptions& options)
    : world_(world), options_(options) {
  if (options.dry) {
    device_ = make_dry_device();
    ops_ = make_dry_ops();
    queue_ = device_->make_queue();
    return;
  }
  choice_ = choose_device(world, options.device, options.transport, options.hide_gpus);
  const int cores = cores_of_rank(world);  // collective
  threads_ = options.threads > 0 ? options.threads : cores;
  std::optional<Error> fault;
  Backend backend;
  attempt(fault, [&] {
    if (choice_.gpu >= 0)
      backend = gpu_backend(options.precision, choice_.gpu, choices_file());
    else
      backend = {make_cpu_device(), host_ops(options.precision, threads_)};
  });
  agree(world, fault);
  device_ = std::move(backend.device);
  ops_ = std::move(backend.ops);
  queue_ = device_->make_queue();
  device_world_ = make_device_world();
  device_world().set_watchdog(options.watchdog_seconds);
  queue_->set_poll([this] { device_world().progress(); });
  if (Ranges* ranges = device_->ranges()) show_phases(*ranges);
}

void Machine::show_phases(Ranges& ranges) {
  profiled_.emplace(clock_, [&ranges, open = false](const char* phase) mutable {
    if (open) ranges.end();
    open = *phase != '\0';
    if (open) ranges.begin(phase);
  });
}

std::unique_ptr<Communicator> Machine::make_device_world() {
  if (choice_.transport == TransportKind::nccl) return make_gpu_world(world_, *device_, *queue_);
  std::unique_ptr<Communicator> host_group;  // made by all ranks, also those without a GPU
  if (choice_.transport == TransportKind::nccl_and_staged)
    host_group = world_.subgroup(choice_.owners, "gpus");
  if (choice_.gpu < 0) return nullptr;
  auto staged = make_staged_communicator(world_, *device_, *queue_);
  if (host_group == nullptr || host_group->size() == 1) return staged;
  return make_mixed_communicator(std::move(staged),
                                 make_gpu_world(world_, *device_, *queue_, std::move(host_group)),
                                 choice_.owners);
}

std::string Machine::choices_file() const {
  if (options_.engines_folder.empty()) return {};
  return fmt::format("{}/rank-{}.txt", options_.engines_folder, world_.rank());
}

}  // namespace t3d
