// Machine: one rank's device, operators, queue and world. It lives as long as the process; the
// shapes that work is cut into come and go with formations (train/formation.hpp).
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "core/options.hpp"
#include "core/phase_clock.hpp"
#include "device/device.hpp"
#include "ops/ops.hpp"
#include "train/device_choice.hpp"

namespace t3d {

struct MachineOptions {
  DeviceRule device = DeviceRule::automatic;
  TransportRule transport = TransportRule::automatic;
  PrecisionConfig precision;
  bool hide_gpus = false;       // this rank computes on the CPU, whatever its node has
  int threads = 0;              // of a CPU rank; 0 = its part of the node's cores
  double watchdog_seconds = 0;  // 0 = wait for ever
  std::string
      engines_folder;  // where GPU ranks keep which engines they found fastest; empty = none
  /// Count memory and bytes, compute nothing; as if on GPUs where `dry_gpus`.
  bool dry = false, dry_gpus = false;
};

class Machine {
 public:
  /// Collective over `world`, which must outlive it.
  Machine(Communicator& world, const MachineOptions& options);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  /// All ranks of the job: for numbers in host memory, and for those in device memory.
  [[nodiscard]] Communicator& world() const { return world_; }
  [[nodiscard]] Communicator& device_world() const {
    return device_world_ ? *device_world_ : world_;
  }
  [[nodiscard]] Device& device() const { return *device_; }
  [[nodiscard]] Ops& ops() const { return *ops_; }
  [[nodiscard]] Queue& queue() const { return *queue_; }
  [[nodiscard]] PhaseClock& clock() { return clock_; }
  [[nodiscard]] const DeviceChoice& choice() const { return choice_; }
  /// That a rank computes with on its host's cores, where it does.
  [[nodiscard]] int threads() const { return threads_; }
  /// Where this rank keeps which engines it found fastest; empty = nowhere.
  [[nodiscard]] std::string choices_file() const;
  /// A GPU runs behind the host: what a step reports is read one step later, so that nobody waits.
  /// The same on all ranks.
  [[nodiscard]] bool runs_ahead() const { return choice_.gpus > 0; }
  /// Micro-batches may be recorded as graphs: nothing in them passes through the host.
  [[nodiscard]] bool recordable() const {
    return choice_.gpu >= 0 && (choice_.transport == TransportKind::nccl || choice_.alone);
  }
  /// Some rank computes on a GPU, or would in a dry run. The same on all ranks.
  [[nodiscard]] bool has_gpus() const { return choice_.gpus > 0 || options_.dry_gpus; }

 private:
  std::unique_ptr<Communicator> make_device_world();
  void show_phases(Ranges& ranges);

  Communicator& world_;
  MachineOptions options_;
  DeviceChoice choice_;
  int threads_ = 1;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Communicator> device_world_;  // where data is not in host memory
  PhaseClock clock_;
  std::optional<PhaseClock::Listener> profiled_;  // phases, where a profiler looks
};

}  // namespace t3d
