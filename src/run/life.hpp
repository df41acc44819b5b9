// The record of this life in the run folder (io/lives/life_files.hpp), kept by rank 0 under the
// run's lock. On the others, and where the record cannot be kept, nothing happens: a warning is all
// that it may cost.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "config/config.hpp"
#include "io/checkpoint/checkpoint.hpp"
#include "io/lives/life_files.hpp"
#include "io/lock/run_lock.hpp"

namespace t3d {

class Life {
 public:
  explicit Life(Warn warn) : warn_(std::move(warn)) {}

  /// The run folder is locked, by a lock that lives as long as there are calls. Closes the record
  /// of a life that was killed, and removes exit.json (Error(io)). `remark`: on why it starts.
  void begin(const Config& config, const RunLock& lock, index_t ranks, index_t nodes,
             const std::string& remark = {});
  /// An earlier life of this job has brought checkpoints: what -r says was meant for the first one.
  [[nodiscard]] bool goes_on_in_job() const { return goes_on_in_job_; }
  /// The state is loaded, or made, and the log begins behind it. Where nothing began, nothing
  /// happens here and below.
  void goes_on(const std::optional<CheckpointInfo>& from, index_t step, index_t lineage);
  /// 1, 2, ... in this folder; rank 0 knows it.
  [[nodiscard]] index_t number() const { return life_.life; }
  /// After every step; `later` as RunLog's.
  template <class Later>
  void step_done(const Later& later) {
    if (begun_ && !life_.first_step_seconds) later(dir_ + "/life.json", first_step_done());
  }
  /// Of the newest checkpoint; -1: none. Kept soon: when a life that was killed is looked at, its
  /// checkpoints may be gone.
  template <class Later>
  void saved(index_t step, const Later& later) {
    if (!begun_ || step <= life_.from_step.value_or(0) || step == life_.saved_step) return;
    life_.saved_step = step;
    later(dir_ + "/life.json", writes_life());
  }
  /// The life has ended in order, as exit.json says.
  void end(const ExitRecord& exit);

 private:
  std::function<void()> first_step_done();
  [[nodiscard]] std::function<void()> writes_life() const;
  template <class Work>
  bool keep(const Work& work);

  Warn warn_;
  const RunLock* lock_ = nullptr;
  std::string dir_;
  bool begun_ = false, chosen_ = false, goes_on_in_job_ = false;
  LifeRecord life_;
};

}  // namespace t3d
