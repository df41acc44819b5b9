// The main job's checkpoints: in the background where the memory of the nodes allows it, else in
// the foreground; what is reported of them; which one is the newest. Policy of when: train_job.
#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "io/checkpoint/checkpoint.hpp"
#include "io/file_service.hpp"
#include "io/writer/background_save.hpp"

namespace t3d {

class RunLock;

class Saving {
 public:
  /// What it says to the run, on all ranks.
  struct Hearer {
    std::function<void(const std::string&)> note, warn;
    std::function<void()> begun;                // one is under way beside the steps
    std::function<void(double seconds)> ended;  // what the work for one took; 0: there is none
    std::function<void()> sync_lines;           // asks for the lines so far to be on the disk
  };
  /// `lock`: rank 0's. `saved`: step of the checkpoint that the run goes on from, or -1. `logs`:
  /// those of the steps, on rank 0: a checkpoint is not published before the lines of its steps.
  Saving(Communicator& world, const Config& config, const RunLock* lock, index_t saved,
         Hearer hearer, const FileService* logs = nullptr);

  /// Collective, before the first step: takes the memory for what save() is going to copy.
  /// `shortage`: why there is none, equal on all ranks; "" where there is.
  void prepare(const std::vector<TensorPart>& parts, const std::string& shortage);
  /// Collective. Saves `parts` unless that has been done. `now`: waits until it is published.
  /// `last`: no step is to come. Throws AgreedError(diverged) where they are not finite, and
  /// AgreedError(unavailable) where the lock is lost; what else goes wrong is a warning, as another
  /// checkpoint is going to follow.
  void save(const CheckpointState& state, const std::vector<TensorPart>& parts, bool now,
            bool last);
  /// Collective: a step has been done, and these are the flags of all ranks. Publishes what all
  /// have written. `proven`: the step has used the weights; checkpoints that stayed in case they
  /// were of no use are removed, in a thread of rank 0. Throws as save().
  void step_done(index_t step, unsigned flags, bool proven);
  /// Collective. Waits for the checkpoint under way, if there is one. Throws as save().
  void settle();
  /// The run is asked to stop: checkpoints wait for kMoment at most for the lines of their steps.
  void hurry() { line_seconds_ = std::min(line_seconds_, kMoment); }
  static constexpr double kMoment = 5;
  /// Collective. Waits so long at most for checkpoints to be removed; a note says when the next
  /// life goes on with it.
  void end_removal(double seconds);
  /// A checkpoint has begun and not ended.
  [[nodiscard]] bool under_way() const { return pending() >= 0; }
  /// kSaving, or nothing.
  [[nodiscard]] unsigned flags();
  /// Of the newest checkpoint that is published; -1 without one.
  [[nodiscard]] index_t last_saved() const { return last_saved_; }
  /// On rank 0: another process holds the lock, or it is gone. One that cannot be read is not.
  [[nodiscard]] static bool lock_is_gone(const RunLock* lock);

 private:
  [[nodiscard]] index_t pending() const { return background_ ? background_->pending() : -1; }
  void prepare_background(const std::vector<TensorPart>& parts, const std::string& shortage);
  void end(const SaveOutcome& outcome);
  void look_after(index_t step);
  void remove_old(index_t keep);
  [[nodiscard]] bool has_lines();
  void wait_for_lines();
  void save_in_foreground(CheckpointState state, const std::vector<TensorPart>& parts, bool last);
  void published(const std::string& path, index_t step, bool proven);
  void failed(index_t step, const Error& error);
  [[noreturn]] void refuse_ruined(const std::string& name, index_t step) const;
  [[nodiscard]] CheckpointOptions options() const;
  /// Whether weights are of use the next step's loss tells: until then one checkpoint more stays.
  [[nodiscard]] index_t kept(bool proven) const {
    return config_.checkpoint.keep + (proven ? 0 : 1);
  }

  Communicator& world_;
  const Config& config_;
  const RunLock* lock_;
  Hearer hearer_;
  const FileService* logs_;
  std::unique_ptr<FileService> removals_;  // rank 0's
  index_t lines_ = 0;                      // up to the checkpoint under way
  double lines_since_ = 0;
  double line_seconds_;  // so long at most they are waited for
  std::unique_ptr<BackgroundSave> background_;
  Lineage lineage_;
  index_t last_saved_;
  std::string newest_;          // path of the newest checkpoint of this life
  bool unproven_ = false;       // no step has gone on from it yet
  bool gone_on_ = false;        // one has gone on from that under way
  index_t knows_nothing_ = -1;  // up to this step, flags say nothing of the processes at work
  int failures_ = 0;            // of processes, in a row
};

}  // namespace t3d
