// Trainer: a formation, its data and its progress on one rank; a step, an evaluation, the state
// that a checkpoint holds, and the change to another plan. Nothing here decides when to stop, to
// save or to change.
#pragma once
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/run_event.hpp"
#include "core/slowdown.hpp"
#include "data/batch_source.hpp"
#include "hetero/cost/traffic.hpp"
#include "io/checkpoint/checkpoint.hpp"
#include "train/formation.hpp"
#include "train/step/evaluate.hpp"
#include "train/step/host_image.hpp"
#include "train/step/loss_scale.hpp"
#include "train/step/noise_scale.hpp"
#include "train/step/schedule.hpp"

namespace t3d {

struct TrainOptions {
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  RunLength length;
  std::uint64_t seed = 1;
  double loss_scale = 0;  // 0 = by the activations' type
  bool check_finite = true;
  bool graphs = true;  // GPUs: micro-batches recorded where nothing in them passes through the host
  /// Steps between two gatherings of the ranks' times. Where steps are recorded, times come from
  /// every kTimedSteps-th one, which is not.
  index_t times_every = 1;
  index_t replicas_every = 100;  // steps between two looks at whether replicas are alike; 0 = never
  SlowdownSchedule slowdown;     // emulation: makes ranks slower
};

/// What a change of plan cost.
struct ReshapeReport {
  double seconds = 0;
  Ledger predicted;                // bytes that this rank sent, by formula
  std::vector<std::string> reset;  // names of the state that starts at 0
};

struct MendReport {
  bool mended = false;  // else no state is known to be sound
  std::string text;     // which replicas differ, and what was done; empty where none does
  ReshapeReport moved;
};

class Trainer {
 public:
  /// Collective over machine.world(). `source` may be null in a dry run. Weights are initialised
  /// from the seed.
  Trainer(Machine& machine, Plan plan, const TrainOptions& options,
          std::shared_ptr<BatchSource> source);

  /// Queues the next step; one without any target that counts leaves all state as it is and only
  /// reports. `flags`: this rank's wishes (RunFlag), or-ed over all ranks. `decision`: what this
  /// rank has decided, and wants to do when all have said the same; 0 = nothing. At most
  /// kMostPending steps may await their report.
  void start_step(unsigned flags, std::uint64_t decision = 0);
  /// The report of the oldest started step; waits for it. Throws AgreedError where its loss or
  /// gradient is not finite (the weights are of no use then), and where ranks hold different plans
  /// or have decided differently.
  [[nodiscard]] StepReport finish_step();
  [[nodiscard]] index_t pending() const { return static_cast<index_t>(pending_.size()); }
  static constexpr std::size_t kMostPending = 2;
  static constexpr index_t kTimedSteps = 20;
  /// Both.
  [[nodiscard]] StepReport step(unsigned flags) {
    start_step(flags);
    return finish_step();
  }
  /// Mean loss over the first `sequences` samples of `source`, in the run's micro-batches.
  [[nodiscard]] double evaluate(BatchSource& source, index_t sequences) {
    return evaluate(source, sequences, nullptr).loss;
  }
  /// The same; `interruption` may break it off.
  [[nodiscard]] EvaluatedLoss evaluate(BatchSource& source, index_t sequences,
                                       Interruption* interruption);

  [[nodiscard]] const Plan& plan() const { return formation_->plan(); }
  [[nodiscard]] const Progress& progress() const { return progress_; }
  [[nodiscard]] const Course& course() const { return course_; }
  [[nodiscard]] bool ended() const { return course_.ended(progress_); }
  /// Steps of the whole run, as it looks now.
  [[nodiscard]] index_t steps() const { return course_.steps(progress_); }

  /// Another plan for the rest of the run: the same state in other shards, through messages only.
  /// Where only parts of the batch change (Plan::same_parameters), nothing moves. Collective over
  /// machine.world(); no step may be pending.
  ReshapeReport reshape(Plan plan);
  /// Where the weights of replicas differ: what most of them hold goes to all; that of the
  /// first one, where processors are of several kinds. Collective as reshape().
  [[nodiscard]] MendReport mend_replicas();

  /// State as boxes of global tensors, in host memory: as it is now, valid until the next step.
  /// Parts whose name starts with kPrivateState may be lacking in a checkpoint of other replicas.
  [[nodiscard]] std::vector<TensorPart> parts();
  /// Of parts(), what this rank writes: over all ranks every element once.
  [[nodiscard]] std::vector<TensorPart> parts_to_save();
  static constexpr const char* kPrivateState = "aggregate/";
  /// The scalars that belong to parts(), as texts of a checkpoint.
  [[nodiscard]] std::map<std::string, std::string> texts() const;
  /// After the last parts() were filled from a checkpoint with these texts at `step`. Samples are
  /// counted; checkpoints that do not say how many were done had `sequences` of them in every step.
  void restore(index_t step, const std::map<std::string, std::string>& texts, index_t sequences);
  /// The optimizers' state starts at 0: what stands in the checkpoint is of another kind.
  void forget_updates();

  [[nodiscard]] Formation& formation() { return *formation_; }
  /// Bytes that this rank sends in one step; the formula side of the ledger.
  [[nodiscard]] const Ledger& predicted_step() const {
    return predicted_[computes_][gathers_times_];
  }
  /// Of an evaluation of which so many rounds were done, with so many agreements on the way.
  [[nodiscard]] Ledger predicted_evaluation(index_t sequences, index_t rounds = kAllRounds,
                                            index_t agreements = 0) const;

 private:
  /// This rank's clocks, in seconds since some moment.
  struct Clocks {
    double wall = 0, cpu = 0;                     // cpu: of the thread
    double waited = 0, waited_cpu = 0;            // for others
    double slept = 0, emulated_cpu = 0;           // core/thread_clock.hpp
    double matmul = 0, attention = 0, whole = 0;  // phases
  };
  [[nodiscard]] Clocks clocks();
  /// What a step says of itself, as fp64 on the device: summed over the ranks.
  enum Value {
    kLoss,
    kSquares,
    kLeafSquares,
    kReplicas,  // agreement.hpp; the host sends from here on
    kMark,
    kMarkSquares,
    kFlags,
    kValues = kFlags + kRunFlags,
    kSent = kValues - kReplicas
  };
  struct Pending {
    StepReport report;             // what the host knows already
    std::vector<index_t> targets;  // that count, by replica, then leaf
    std::vector<double> weights;   // of the same leaves, by these targets
    double* values = nullptr;      // [kValues]
    double* summary = nullptr;
    std::unique_ptr<Marker> there;
    QueueTimer* timer = nullptr;        // of the device, where the host's clocks say nothing of it
    std::vector<double> own, of_ranks;  // [kReportNumbers], [ranks, kReportNumbers] or empty
    Work gathering;                     // of_ranks
    Clocks started;
    bool first = false;  // under its plan
    double mark = 0;     // of this rank
  };
  /// While one lives, this rank's device is timed.
  class Timing;
  /// Micro-batches are recorded as graphs, in which nothing can be timed: on all ranks or on none.
  [[nodiscard]] bool records() const { return machine_.recordable() && options_.graphs; }
  /// The timer of the step to come; null where there is none, or the step is recorded. Those that
  /// are traced are not.
  [[nodiscard]] QueueTimer* timer_of_step();
  /// What the device says of the step, also into the trace; all 0 without a timer.
  [[nodiscard]] static QueueTimes take_times(const Pending& pending);
  static void read_timer(const std::array<double, kQueueParts>& seconds, RankTimes& times);
  /// All but `own`, from the host's clocks.
  void read_clocks(const Clocks& from, const Clocks& now, RankTimes& times) const;
  void form(Plan plan);
  /// `source`: the replica whose state all get; kOwnReplica: each its own.
  ReshapeReport reshape(Plan plan, index_t source);
  /// Of this rank's shards of the weights; waits for the device.
  [[nodiscard]] std::uint64_t digest_of_weights();
  [[nodiscard]] std::string own_digest();
  /// Whether replicas are compared in this step.
  [[nodiscard]] bool compares_replicas(index_t step) const;
  void check_agreement(const Pending& pending);
  void take_batch(Plan plan, ReshapeReport& report);
  void predict_step();
  /// Counts the targets of every leaf of the step to come, and weights the leaves by them.
  void count_targets(Pending& pending);
  /// Throws AgreedError when there is no target that counts in the whole corpus.
  void find_any_target();
  void run_step(Pending& pending);
  /// `targets` of the leaf count.
  void run_leaf(std::size_t leaf, index_t targets, index_t& position);
  void run_micro_batches(std::size_t leaf, index_t targets, index_t& position,
                         const GradientSink* sink);
  /// Whether the pending step's gradient can be used; waits for it. Only with a dynamic loss scale.
  [[nodiscard]] bool usable(const Pending& pending);
  /// What the summary of aggregation says, into the report.
  void read_summary(const Pending& pending, StepReport& report) const;
  /// What the squares of leaves and of their mean say of signal and noise, into the report.
  void read_squares(const Pending& pending, StepReport& report) const;
  /// Sends what this rank has to report, and starts its way to the host.
  void send_report(unsigned flags, Pending& pending);
  void read_report(const Pending& pending, StepReport& report) const;
  void send_host_values(unsigned flags, const Pending& pending);
  void measure(const Pending& pending, StepReport& report);
  void check_finite(const Pending& pending, const StepReport& report) const;

  Machine& machine_;
  TrainOptions options_;
  std::shared_ptr<BatchSource> source_;
  LossScale loss_scale_;
  Course course_;
  Progress progress_;
  std::unique_ptr<Formation> formation_;
  std::string plan_hash_;
  Ledger predicted_[2][2];  // of a step by whether it computes_, gathers_times_
  bool computes_ = true, gathers_times_ = true;  // in the step that was started last
  bool any_target_ = false;                      // seen in the corpus
  Tensor values_, clip_factor_;
  std::unique_ptr<HostImage> image_;
  std::unique_ptr<double[], HostRelease> host_values_;   // [kMostPending, kValues]
  std::unique_ptr<double[], HostRelease> host_summary_;  // [kMostPending, summary]
  std::unique_ptr<double[], HostRelease> host_sent_;     // [kMostPending, kSent]
  std::deque<Pending> pending_;
  index_t started_here_ = 0;  // steps of this formation
  bool fresh_ = true;         // the first step with these shapes
  index_t changes_ = 0;       // of plan
  Clocks last_finish_;
  RankTimes last_times_;    // of the step before
  bool new_times_ = false;  // not yet gathered
  std::array<std::unique_ptr<QueueTimer>, kMostPending> timers_;
  MeasuredStep last_measured_;
  SlabReader reader_;
  NoiseScale noise_scale_;
};

}  // namespace t3d
