// What a reader needs to reproduce a run's figures, kept in run.json of its folder
// (record/log/run_record.hpp): gathered from all nodes when the steps begin, completed when the
// life ends. It is no reason to end a run: what fails is a warning.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "config/config_check.hpp"
#include "core/ledger.hpp"
#include "device/energy_meter.hpp"
#include "hetero/speed/speeds.hpp"
#include "io/lock/run_lock.hpp"
#include "record/log/run_record.hpp"
#include "run/job_report.hpp"
#include "train/machine.hpp"

namespace t3d {

class Provenance {
 public:
  using Say = std::function<void(const std::string&)>;
  /// Writes a file beside the steps: RunLog::later().
  using Later = std::function<void(const std::string& what, std::function<void()> work)>;
  /// `lock`: rank 0's.
  Provenance(const RunLock* lock, std::string dir, Say warn, Later later)
      : lock_(lock), dir_(std::move(dir)), warn_(std::move(warn)), later_(std::move(later)) {}

  /// Collective over machine.world(), before the steps: `start` has what the job knows of itself;
  /// program, hosts, ranks and job are added here. `predicted`: what this rank sends in a step.
  void begin(Machine& machine, LifeStart start, const Ledger& predicted);
  /// From now on energy counts.
  void begin_steps();
  /// After every step of this life; `last`: none will follow.
  void step_done(bool last);
  /// Collective: the life has ended in order.
  void end(Communicator& world, const RunTotals& totals, int code, const std::string& reason,
           const std::string& plan);

 private:
  void keep(const std::function<void()>& write);

  const RunLock* lock_;
  std::string dir_;
  Say warn_;
  Later later_;
  bool begun_ = false;
  bool recorded_ = false;              // by rank 0, that this life has begun
  std::optional<EnergyMeter> energy_;  // on the first rank of each node
  double sampled_ = 0;                 // when
  index_t steps_ = 0, energy_steps_ = 0;
};

/// Shape and sizes.
void describe_plan(const Plan& plan, LifeStart& start);
/// What messages cost, where a probe has measured it.
void describe_links(const Speeds& speeds, LifeStart& start);
/// The resolved input, such that a run of it in another folder has checkpoints of its own.
[[nodiscard]] std::string reproducible_input(Config config, const Origins& origins);

}  // namespace t3d
