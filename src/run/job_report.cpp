#include "run/job_report.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <set>
#include <utility>

#include "comm/agree.hpp"
#include "config/model_text.hpp"
#include "core/counted.hpp"
#include "core/error.hpp"
#include "device/host_limits.hpp"
#include "hetero/cost/flops.hpp"
#include "hetero/speed/vendor_peak.hpp"
#include "io/checkpoint/checkpoint_group.hpp"
#include "io/posix_file.hpp"
#include "record/log/rank_plot.hpp"
#include "run/setup.hpp"
#include "run/text_samples.hpp"
#include "t3d_version.hpp"

namespace t3d {
namespace {

constexpr index_t kWarmUpSteps = 2;  // not in the averages
constexpr std::ptrdiff_t kStepsAfterPause = 5;

bool has_formula(const std::string& axis) {
  return axis != kCheckpointAxis && axis != kSamplesAxis;
}

// Largest resident set of this process so far, in bytes; 0 where the system does not say.
double resident_peak() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return 1024.0 * std::stod(line.substr(6));
  return 0;
}

std::vector<RankLoad> work_by_rank(const Plan& plan) {
  std::vector<RankLoad> work(static_cast<std::size_t>(plan.ranks));
  const MeshShape mesh = plan.mesh();
  const std::vector<int> active = plan.active();
  const auto memo = std::make_shared<CostMemo>();
  for (int number = 0; number < static_cast<int>(active.size()); ++number) {
    const StepWork own = step_work(plan, mesh.coord_of(number), memo);
    work[static_cast<std::size_t>(active[static_cast<std::size_t>(number)])] = {
        static_cast<double>(own.matmul), static_cast<double>(own.attention),
        static_cast<double>(own.streamed)};
  }
  return work;
}

RunLog open_log(Communicator& world, const Config& config, index_t start_step,
                const LogLineage& lineage, bool quiet) {
  if (world.rank() != 0) return {};
  RunLogOptions options;
  options.dir = config.run.dir;
  options.start_step = start_step;
  options.lineage = lineage;
  options.every_steps = config.log.every_steps;
  options.json = config.log.json;
  options.csv = config.log.csv;
  options.tensorboard = config.log.tensorboard;
  options.progress = config.log.progress;
  options.quiet = quiet;
  return RunLog(options);
}

/// The lines of all ranks, each once, in their order.
std::string union_of_lines(Communicator& world, const std::string& lines) {
  std::set<std::string> all;
  for (const std::string& of_rank : all_gather_texts(world, lines))
    for (std::size_t at = 0; at < of_rank.size(); at = of_rank.find('\n', at) + 1)
      all.insert(of_rank.substr(at, of_rank.find('\n', at) - at));
  std::string text;
  for (const std::string& line : all) text += line + "\n";
  return text;
}

}  // namespace

JobReport::JobReport(Machine& machine, const Config& config, index_t start_step,
                     const LogLineage& lineage, bool quiet)
    : machine_(machine),
      world_(machine.world()),
      config_(config),
      first_step_(start_step),
      log_(open_log(world_, config, start_step, lineage, quiet)) {
  if (!config.debug.trace.empty())
    tracing_ = std::make_unique<Tracing>(
        machine, TraceWindow{config.debug.trace[0], config.debug.trace[1]}, config.run.dir);
}

void JobReport::banner(const Trainer& trainer) {
  const Plan& plan = trainer.plan();
  const ModelConfig& model = plan.model;
  note_folded(fmt::format("transformer3d {} ({}), {}, mesh {}, {} in {}, plan {}", kVersion, kGit,
                          counted(world_.size(), "rank"), plan.mesh().describe(),
                          machine_.ops().name(), name_of(plan.activation()), plan.hash()));
  note_folded(fmt::format("model {}: {}, hidden {}, heads {}, ffn {}, vocab {}, context {}",
                          parameters_text(model), counted(model.layers, "layer"), model.hidden,
                          model.heads, model.ffn, model.vocab, model.context));
  const ReplicaPlan& cut = plan.replicas.front();
  note_folded(fmt::format("widths {}; {}; {}; {}; attention by {} over k", cut.hidden.describe(),
                          cut.groups.describe(), cut.ffn.describe(), cut.vocab.describe(),
                          cut.attention));
  if (const index_t idle = plan.ranks - plan.mesh().ranks(); idle > 0)
    warn(fmt::format("{} of {} {} idle", idle, counted(plan.ranks, "rank"),
                     idle == 1 ? "is" : "are"));
}

void JobReport::open(const Trainer& trainer, double rate) {
  const Plan& plan = trainer.plan();
  gemm_rate_ = rate;
  vendor_rate_ = vendor_rate(plan);
  token_flops_ = flops_per_token(plan.model, false);
  if (const DeviceChoice& choice = machine_.choice(); choice.gpu >= 0)
    note_folded(fmt::format("rank 0 on {}; GPU ranks talk {}", machine_.device().name(),
                            choice.alone                              ? "to nobody"
                            : choice.transport == TransportKind::nccl ? "by NCCL"
                            : choice.transport == TransportKind::staged
                                ? "through host memory and MPI"
                                : "by NCCL among themselves, "
                                  "else through host memory "
                                  "and MPI"));
  if (!machine_.choice().note.empty()) note(machine_.choice().note);
  if (gemm_rate_ > 0)
    note_folded(
        fmt::format("matmul rate {:.1f} GFLOP/s over all ranks (mfu 100 %)", gemm_rate_ / 1e9) +
        (vendor_rate_ > 0
             ? fmt::format(", {:.1f} GFLOP/s by the data sheets (peak 100 %)", vendor_rate_ / 1e9)
             : ""));
  nodes_ = all_gather_texts(world_, host_name());
  if (emulates(config_.emulate)) {
    history_.set_emulated();
    warn("emulated: some ranks are made slower ([emulate]); times are not this machine's");
  }
  note(fmt::format("steps {} to {}, {} of {} tokens each", first_step_, trainer.steps(),
                   counted(plan.sequences(), "sequence"), plan.model.context));
}

// Other programs on the cores make what is measured less than what the ranks reach.
void JobReport::raise_matmul_rate(double flops) {
  if (gemm_rate_ <= 0 || flops <= gemm_rate_) return;
  if (!std::exchange(rate_was_low_, true))
    warn(
        fmt::format("this step computes faster ({:.1f} GFLOP/s) than the matmul rate measured at "
                    "the start, beside other programs: from here on mfu is of the fastest step",
                    flops / 1e9));
  gemm_rate_ = flops;
}

// For people: who took how long, step by step, and what for.
void JobReport::write_plot() {
  if (world_.rank() != 0 || world_.size() == 1 || history_.ranks() == 0) return;
  const std::string path = config_.run.dir + "/ranks.svg";
  later(path,
        [path, text = rank_plot(history_, config_.run.name)] { write_text_durably(path, text); });
  note("time of each rank: " + path);
}

void JobReport::begin_steps() {
  world_.ledger().clear();
  machine_.clock().clear();
  phases_before_.clear();
  trace_books(first_step_);
  start_seconds_ = PhaseClock::now();
}

// Compares what was sent since the last step with what the formulas say.
void JobReport::close_books() {
  step_bytes_.clear();
  Ledger counted;  // without what has no formula
  for (const auto& [key, entry] : world_.ledger().table()) {
    if (entry.bytes > 0) step_bytes_[key.second] += entry.bytes;
    if (has_formula(key.second)) counted.add(key.first, key.second, entry);
  }
  if (difference_.empty()) {
    difference_ = difference(counted, predicted_now_);
    if (!difference_.empty())
      difference_ = fmt::format("step {}: {}", first_step_ + steps_done_, difference_);
  }
  counted_.merge(world_.ledger());
  predicted_.merge(predicted_now_);
  predicted_now_.clear();
  world_.ledger().clear();
}

void JobReport::step(const Trainer& trainer, const StepReport& step,
                     const std::vector<NamedLoss>& valid) {
  ++steps_done_;
  close_books();
  trace_books(step.step);
  if (steps_done_ > kWarmUpSteps) {
    step_seconds_ += step.seconds;
    step_tokens_ += static_cast<double>(step.tokens);
  }
  StepRecord record;
  record.step = step.step;
  record.steps = trainer.steps();
  record.loss = step.loss;
  record.grad_norm = step.grad_norm;
  record.lr = step.lr;
  record.seconds = step.seconds;
  if (predictor_) {
    try {
      record.predicted_seconds = predictor_->seconds(trainer.plan());
      predictor_->measured(step.seconds);
      if (step.measures_plan()) predictor_->computed(step.max_own_seconds(), step.measured.seconds);
    } catch (const Error& error) {  // no reason to end a run
      warn(fmt::format("no more predictions: {}", error.what()));
      predictor_.reset();
    }
  }
  record.tokens = static_cast<double>(step.tokens);
  record.tokens_per_second = record.tokens / step.seconds;
  epochs_.read(record.tokens);
  record.epochs = epochs_.most();
  const double flops = token_flops_ * record.tokens_per_second;
  raise_matmul_rate(flops);
  if (gemm_rate_ > 0) record.mfu = flops / gemm_rate_;
  if (vendor_rate_ > 0) record.mfu_of_peak = flops / vendor_rate_;
  record.imbalance = std::numeric_limits<double>::quiet_NaN();
  if (step.mean_own_seconds() > 0)
    record.imbalance = step.max_own_seconds() / step.mean_own_seconds() - 1;
  record.ranks = step.times;
  record.measured = step.measured;
  record.slab_sequences = slab_sequences(trainer.plan());
  record.emulated = emulates(config_.emulate);
  record.comm_fraction = 1 - step.own_seconds / step.seconds;
  for (const auto& [phase, seconds] : machine_.clock().seconds())
    record.phase_seconds[phase] = seconds - phases_before_[phase];
  phases_before_ = machine_.clock().seconds();
  record.bytes_by_axis = step_bytes_;
  record.memory_bytes = machine_.device().memory().reserved_peak;
  record.validations = valid;
  record.gain = step.gain;
  record.gradient_signal = step.gradient_signal;
  record.gradient_noise = step.gradient_noise;
  record.noise_sequences = step.noise_sequences;
  record.left_out = step.left_out;
  if (config_.precision.compute == ComputeType::fp16) record.loss_scale = step.loss_scale;
  if (std::isfinite(step.noise_sequences)) noise_sequences_ = step.noise_sequences;
  sequences_ = trainer.plan().sequences();
  if (world_.rank() == 0) add_times(trainer.plan(), step);
  last_step_ = step.step;
  log_.step(record);
  report_pause(step.seconds);
  for (const int leaf : step.left_out)
    warn(fmt::format("step {}: gradient {} is not finite and was left out", step.step, leaf));
  if (step.targets == 0)
    warn(fmt::format(
        "step {}: no target of its samples counts (all are data.ignore_token, or of prompts); the "
        "weights stay",
        step.step));
  else if (step.skipped)
    warn(fmt::format("step {}: no finite gradient at loss scale {}; the weights stay", step.step,
                     step.loss_scale));
}

void JobReport::add_times(const Plan& plan, const StepReport& step) {
  if (step.measured.step == 0) return;  // the first step of a life knows times of no step
  if (plan_is_new_) {
    work_before_ = std::exchange(work_, {slab_sequences(plan), work_by_rank(plan)});
    plan_is_new_ = false;
  }
  const bool of_before = step.measured.slabs == work_before_.slabs;
  history_.add(step.measured.step, step.measured.seconds, step.times,
               of_before ? work_before_.ranks : work_.ranks);
}

// The first step under a new plan chooses engines and fills caches: what it takes beyond those that
// follow is part of the price.
void JobReport::report_pause(double step_seconds) {
  if (!pause_) return;
  std::vector<double>& steps = pause_->steps;
  steps.push_back(step_seconds);
  if (std::ssize(steps) < 1 + kStepsAfterPause) return;
  const double first = steps.front();
  const auto middle = steps.end() - (kStepsAfterPause + 1) / 2;
  std::nth_element(steps.begin() + 1, middle, steps.end());
  const double extra = std::max(0.0, first - *middle), all = pause_->state_seconds + extra;
  note(
      fmt::format("the change of plan cost {:.3f} s, {:.2f} of a step: {:.3f} s for the state, "
                  "{:.3f} s more in the first step than in the next {}",
                  all, all / *middle, pause_->state_seconds, extra, kStepsAfterPause));
  pause_.reset();
}

void JobReport::reshaped(double seconds, const Plan& before, const Plan& plan,
                         const std::string& reason) {
  pause_ = Pause{seconds, {}};
  plan_is_new_ = true;
  const bool same = before.same_parameters(plan);
  const std::string what =
      same ? fmt::format("sequences by slab {} -> {}", fmt::join(slab_sequences(before), "+"),
                         fmt::join(slab_sequences(plan), "+"))
           : fmt::format("mesh {} -> {}, state moved in {:.3f} s", before.mesh().describe(),
                         plan.mesh().describe(), seconds);
  note(fmt::format("plan {}: {}; {}", plan.hash(), what, reason));
  history_.mark(last_step_, same ? fmt::format("{}", fmt::join(slab_sequences(plan), "+"))
                                 : plan.mesh().describe());
}

// Rank 0's phases, over all ranks.
std::vector<PhaseRow> JobReport::phase_rows() {
  std::string names;
  for (const auto& [phase, seconds] : machine_.clock().seconds()) names += phase + "\n";
  names = broadcast_text(world_, names);
  std::vector<PhaseRow> rows;
  for (std::size_t at = 0; at < names.size();) {
    const std::size_t end = names.find('\n', at);
    rows.push_back({names.substr(at, end - at), 0, 0, 0});
    at = end + 1;
  }
  std::vector<double> sums, extremes;
  for (const PhaseRow& row : rows) {
    const auto found = machine_.clock().seconds().find(row.name);
    const double seconds = found == machine_.clock().seconds().end() ? 0 : found->second;
    sums.push_back(seconds);
    extremes.push_back(seconds);
    extremes.push_back(-seconds);
  }
  const auto view = [](std::vector<double>& values) {
    return TensorView(values.data(), DType::f64, 1, static_cast<index_t>(values.size()));
  };
  world_.all_reduce(view(sums), ReduceOp::sum).wait_host();
  world_.all_reduce(view(extremes), ReduceOp::max).wait_host();
  for (std::size_t at = 0; at < rows.size(); ++at)
    rows[at] = {rows[at].name, -extremes[2 * at + 1], sums[at] / world_.size(), extremes[2 * at]};
  std::sort(rows.begin(), rows.end(), [](const PhaseRow& a, const PhaseRow& b) {
    return a.average_seconds > b.average_seconds;
  });
  return rows;
}

std::vector<AxisRow> JobReport::axis_rows() {
  std::set<std::string> axes;
  for (const Ledger* ledger : {&counted_, &predicted_})
    for (const auto& [key, entry] : ledger->table()) axes.insert(key.second);
  std::string names;
  for (const std::string& axis : axes) names += axis + "\n";
  names = union_of_lines(world_, names);
  std::vector<AxisRow> rows;
  for (std::size_t at = 0; at < names.size();) {
    const std::size_t end = names.find('\n', at);
    const std::string axis = names.substr(at, end - at);
    at = end + 1;
    // fp64 holds byte counts exactly up to 2^53.
    std::array<double, 2> bytes{static_cast<double>(counted_.bytes_on(axis)),
                                static_cast<double>(predicted_.bytes_on(axis))};
    world_.all_reduce({bytes.data(), DType::f64, 1, 2}, ReduceOp::sum).wait_host();
    if (bytes[0] <= 0 && bytes[1] <= 0) continue;
    rows.push_back({axis, static_cast<index_t>(bytes[0]), std::nullopt});
    if (has_formula(axis)) rows.back().predicted_bytes = static_cast<index_t>(bytes[1]);
  }
  return rows;
}

void JobReport::predict_by(std::unique_ptr<StepPredictor> predictor, const std::string& run) {
  predictor_ = std::move(predictor);
  run_ = run;
  const std::string path = factors_path();
  try {
    if (path_exists(path)) earlier_ = read_record_file(path);
    (void)predictor_->factors_text(run_, earlier_, path);
  } catch (const Error& error) {
    earlier_.clear();
    warn(fmt::format("written anew: {}", error.what()));
  }
}

std::string JobReport::factors_path() const { return config_.run.dir + "/" + kStepFactorsFile; }

/// With those of the run's earlier lives, where they are about the same tables.
void JobReport::save_factors() {
  const std::string path = factors_path();
  std::string text = predictor_->factors_text(run_, earlier_, path);
  if (text.empty()) return;
  later(path, [path, text = std::move(text)] { write_text_durably(path, text); });
}

// A step is what its books have: what is sent after them belongs to the next.
void JobReport::trace_books(index_t step) {
  if (!tracing_) return;
  tell(tracing_->books_closed(step));
  if (tracing_->over()) tracing_.reset();
}

void JobReport::tell(const TraceNews& news) {
  if (news.text.empty()) return;
  if (news.is_warning)
    warn(news.text);
  else
    note(news.text);
}

void JobReport::finish(const std::string& reason) {
  if (tracing_) tell(tracing_->end());
  tracing_.reset();
  EndTable table;
  table.reason = reason;
  table.steps = steps_done_;
  table.seconds = PhaseClock::now() - start_seconds_;
  table.tokens_per_second = step_seconds_ > 0 ? step_tokens_ / step_seconds_ : NAN;
  if (gemm_rate_ > 0 && step_seconds_ > 0) table.remarks.push_back(mfu_remark());
  if (std::string text = epochs_.remark(); !text.empty()) table.remarks.push_back(std::move(text));
  if (noise_sequences_ > 0) table.remarks.push_back(batch_remark());
  if (predictor_) {
    for (const std::string& remark : predictor_->remarks()) table.remarks.push_back(remark);
    save_factors();
  }
  table.phases = phase_rows();
  table.axes = axis_rows();
  if (world_.size() > 1) table.ranks = rank_table(history_, nodes_);
  log_.finish(table);
  totals_ = {table.steps, table.seconds, table.axes, 0, 0};
  write_plot();
  report_difference();
  note(memory_line());
}

// What it sends is not a step's.
void JobReport::interim() {
  const Ledger before = world_.ledger();
  std::unique_ptr<Tracing> tracing = std::move(tracing_);  // goes on
  finish(fmt::format("asked for by report_now after step {}", last_step_));
  tracing_ = std::move(tracing);
  world_.ledger() = before;
}

// Sums over the run and the ranks, as in the table, can hide what was too much here and too little
// there: this is the first step and rank where a verb on an axis sent other bytes than predicted.
void JobReport::report_difference() {
  int rank = 0;
  for (const std::string& text : all_gather_texts(world_, difference_)) {
    if (!text.empty()) {
      warn(fmt::format("rank {}: bytes sent differ from the formula: {}", rank, text));
      return;
    }
    ++rank;
  }
}

// The data sheets' rate of all GPUs; 0 where a rank has none, or one that is not in the table.
double JobReport::vendor_rate(const Plan& plan) const {
  const DeviceChoice& choice = machine_.choice();
  const double own =
      choice.gpu < 0
          ? 0
          : vendor_peak(machine_.device().name(), plan.compute, plan.matmul) / choice.sharers;
  std::array<double, 2> sums{own, own > 0 ? 0.0 : 1.0};
  world_.all_reduce({sums.data(), DType::f64, 1, 2}, ReduceOp::sum).wait_host();
  return sums[1] > 0 ? 0 : sums[0];
}

std::string JobReport::mfu_remark() const {
  const double flops = token_flops_ * step_tokens_ / step_seconds_;
  std::string text = fmt::format(
      "mfu {:.1f} % of {}", 100 * flops / gemm_rate_,
      rate_was_low_ ? "the fastest step's rate" : "the matmul rate measured at the start");
  if (vendor_rate_ > 0)
    text += fmt::format(", {:.1f} % of the data sheets' peak", 100 * flops / vendor_rate_);
  return text;
}

// McCandlish et al. 2018: at this batch a step takes twice as many samples and half as many steps
// as the least possible.
std::string JobReport::batch_remark() const {
  return fmt::format(
      "noise scale {} sequences ({} tokens): batches far below it waste steps, far above it "
      "samples; this run's is {}",
      short_count(noise_sequences_),
      short_count(noise_sequences_ * static_cast<double>(config_.model.context)), sequences_);
}

// The largest rank's, part by part.
std::string JobReport::memory_line() {
  const MemoryAccount& account = machine_.device().memory();
  std::vector<double> memory{static_cast<double>(account.reserved_peak), resident_peak()};
  for (const index_t bytes : account.at_peak) memory.push_back(static_cast<double>(bytes));
  world_
      .all_reduce({memory.data(), DType::f64, 1, static_cast<index_t>(memory.size())},
                  ReduceOp::max)
      .wait_host();
  totals_.tensor_bytes = memory[0];
  totals_.resident_bytes = memory[1];
  std::string kinds;
  for (std::size_t kind = 0; kind < kMemoryKinds; ++kind)
    kinds += fmt::format("{}{} {}", kind == 0 ? "" : ", ", name_of(static_cast<MemoryKind>(kind)),
                         short_bytes(memory[2 + kind]));
  return fmt::format(
      "memory of the largest rank: {} for tensors, {} resident with program and libraries\n{}",
      short_bytes(memory[0]), short_bytes(memory[1]), folded("  at its peak " + kinds, 4));
}

}  // namespace t3d
