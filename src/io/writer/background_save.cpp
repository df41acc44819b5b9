#include "io/writer/background_save.hpp"

#include <algorithm>
#include <thread>

#include "comm/agree.hpp"
#include "device/host_limits.hpp"
#include "io/checkpoint/checkpoint_files.hpp"
#include "io/checkpoint/save_steps.hpp"
#include "io/checkpoint/state_digest.hpp"
#include "io/lock/lock_owner.hpp"
#include "io/packer.hpp"
#include "io/writer/snapshot.hpp"
#include "io/writer/writer_process.hpp"

namespace t3d {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// `bytes`: what all of this node's files need together.
void check_memory(index_t bytes) {
  for (const MemoryLimit& limit : memory_limits())
    if (limit.free < bytes + bytes / 16)
      throw_error(ExitCode::unavailable, "a snapshot needs {} on {}, and {} are free there",
                  format_bytes(static_cast<double>(bytes)), host_name(),
                  format_bytes(static_cast<double>(limit.free)));
}

}  // namespace

class BackgroundSave::Impl {
 public:
  Impl(Communicator& world, const CheckpointOptions& options, std::string digest_without,
       double limit_seconds)
      : options_(options),
        without_(std::move(digest_without)),
        limit_seconds_(limit_seconds),
        groups_(world, options.ranks_per_file),
        owner_(options.lock != nullptr ? options.lock->token : random_token()),
        cores_(cores_of_host()) {}

  void prepare(const std::vector<TensorPart>& parts) {
    std::string description;
    std::optional<Error> fault;
    attempt(fault, [&] { description = describe_parts(parts, true); });
    agree(all(), fault);
    std::int32_t changed = description != description_ || !memory_;
    all().all_reduce({&changed, DType::i32, 1, 1}, ReduceOp::bit_or).wait_host();
    if (changed == 0) return;
    description_.clear();  // until all is there
    plan_for(description);
    take_memory();
    // Maps this rank's pages: later copies do not pay for it.
    layout_->copy(group().rank(), parts, memory_->data());
    description_ = description;
  }

  void begin(const CheckpointState& state, const std::vector<TensorPart>& parts) {
    began_ = Clock::now();
    std::optional<Error> fault;
    attempt(fault, [&] { layout_->copy(group().rank(), parts, memory_->data()); });
    state_ = state;
    partial_.clear();
    attempt(fault, [&] {
      if (leads_all()) choose_folder();
    });
    try {
      agree(all(), fault);  // and all have copied
    } catch (const AgreedError&) {
      if (leads_all() && !partial_.empty()) remove_checkpoint(partial_, owner_);
      all().barrier();
      throw;
    }
    take_names();
    outcome_ = {};
    outcome_.step = state_.step;
    fault_.reset();
    attempt(fault_, [&] { start_writer(); });  // told when all writers have ended
    phase_ = Phase::writing;
    outcome_.stall_seconds = outcome_.work_seconds = seconds_since(began_);
  }

  [[nodiscard]] index_t pending() const { return phase_ == Phase::none ? -1 : state_.step; }
  [[nodiscard]] bool busy() { return process_ && !process_->look(); }

  std::optional<SaveOutcome> advance(index_t keep) {
    try {
      if (phase_ == Phase::writing)
        end_writing(keep);
      else if (end_publishing())
        return end();
    } catch (const AgreedError& error) {
      process_.reset();
      if (leads_all()) remove_checkpoint(partial_, owner_);
      all().barrier();  // nobody breaks the group for the leader
      outcome_.fault = error;
      return end();
    }
    if (outcome_.not_finite.empty()) return std::nullopt;
    if (leads_all()) remove_checkpoint(partial_, owner_);
    all().barrier();
    return end();
  }

  SaveOutcome settle(index_t keep) {
    for (;;) {
      std::int32_t at_work = busy();
      all().all_reduce({&at_work, DType::i32, 1, 1}, ReduceOp::bit_or).wait_host();
      if (at_work != 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        continue;
      }
      if (std::optional<SaveOutcome> outcome = advance(keep)) return *outcome;
    }
  }

 private:
  enum class Phase { none, writing, publishing };

  [[nodiscard]] Communicator& all() { return *groups_.all; }
  [[nodiscard]] Communicator& group() { return *groups_.group; }
  [[nodiscard]] bool leads_all() { return all().rank() == 0; }
  [[nodiscard]] bool leads() { return group().rank() == 0; }

  void plan_for(const std::string& description) {
    std::optional<Error> fault;
    descriptions_ = all_gather_texts(group(), description);
    attempt(fault, [&] {
      layout_.reset();
      plan_ = std::make_unique<SavePlan>(descriptions_);
      layout_.emplace(*plan_);
    });
    agree(all(), fault);
    std::string text;
    attempt(fault, [&] {
      if (leads()) text = text_of(plan_->fragment());
    });
    text = join_texts_of_ranks(all(), text, join_texts, fault);
    agree(all(), fault);  // what one rank lacks would look to rank 0 as if boxes were missing
    attempt(fault, [&] {
      if (!leads_all()) return;
      const Fragment whole = parse_fragment(text);
      check_cover(whole);
      bytes_ = tensor_bytes(whole);
    });
    agree(all(), fault);
  }

  void take_memory() {
    std::optional<Error> fault;
    const index_t bytes = layout_->bytes();
    const bool enough = memory_ && memory_->bytes() == bytes;
    std::int32_t lacks = !enough;
    all().all_reduce({&lacks, DType::i32, 1, 1}, ReduceOp::bit_or).wait_host();
    if (lacks == 0) return;
    memory_.reset();
    const index_t of_node = bytes_here(leads() ? bytes : 0);
    std::string name;
    attempt(fault, [&] {
      if (!groups_.one_host)
        throw_error(ExitCode::unavailable,
                    "ranks of one file are on several nodes (checkpoint.ranks_per_file)");
      if (!leads()) return;
      check_memory(of_node);
      memory_.emplace(SnapshotMemory::made(bytes));
      name = memory_->name();
    });
    agree(all(), fault);
    name = broadcast_text(group(), name);
    attempt(fault, [&] {
      if (!leads()) memory_.emplace(SnapshotMemory::joined(name, bytes));
    });
    if (fault) memory_.reset();
    try {
      agree(all(), fault);
    } catch (...) {
      memory_.reset();
      throw;
    }
  }

  /// Of all ranks on this host. Collective.
  [[nodiscard]] std::string cores_of_host() {
    Packer packer;
    packer.add(host_name());
    packer.add(cores_text(process_cores()));
    cpu_set_t all_cores;
    CPU_ZERO(&all_cores);
    for (const std::string& text : all_gather_texts(all(), packer.take())) {
      Unpacker from(text);
      const bool here = from.text() == host_name();
      const cpu_set_t cores = parse_cores(from.text());
      if (here) CPU_OR(&all_cores, &all_cores, &cores);
    }
    return cores_text(all_cores);
  }

  /// The sum over the ranks of this host. Collective.
  [[nodiscard]] index_t bytes_here(index_t own) {
    Packer packer;
    packer.add(host_name());
    packer.add(own);
    index_t sum = 0;
    for (const std::string& text : all_gather_texts(all(), packer.take())) {
      Unpacker from(text);
      const bool here = from.text() == host_name();
      const index_t bytes = from.number();
      if (here) sum += bytes;
    }
    return sum;
  }

  void choose_folder() {
    make_folder(options_.dir);
    if (options_.lock != nullptr) options_.lock->check();
    check_space(options_.dir, bytes_);
    partial_ = make_partial_folder(options_.dir, state_, owner_);
  }

  /// Rank 0's words for folder, run and step, which names and CRCs begin with.
  void take_names() {
    Packer packer;
    packer.add(partial_);
    packer.add(random_token().substr(0, 8));
    packer.add(state_.run_id);
    packer.add(state_.step);
    const std::string text = broadcast_text(all(), packer.take());
    Unpacker from(text);
    partial_ = from.text();
    mark_ = from.text();
    state_.run_id = from.text();
    state_.step = from.number();
  }

  void start_writer() {
    process_.reset();
    if (!leads() || plan_->rounds().empty()) return;
    FileTask task{descriptions_, partial_,    node_file_name(groups_.file_number, state_, mark_),
                  state_.run_id, state_.step, options_.verify,
                  without_};
    process_ = std::make_unique<WriterProcess>("file", text_of(task), memory_->file(),
                                               limit_seconds_, cores_);
  }

  /// What this rank's process says; throws what went wrong there. Publishing has happened where its
  /// answer names the folder, however the process ended.
  TaskResult take_result() {
    TaskResult result;
    if (process_) {
      while (!process_->look()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      result = *process_->look();
    }
    process_.reset();
    if (result.fault && (phase_ == Phase::writing || result.text.empty()))
      throw_error(result.fault->code(), "{} (node {})", result.fault->what(), host_name());
    return result;
  }

  void end_writing(index_t keep) {
    TaskResult own;
    attempt(fault_, [&] { own = take_result(); });
    agree(all(), fault_);
    attempt(fault_, [&] {
      if (leads() && plan_->rounds().empty()) own.text = text_of(plan_->fragment());
    });
    const std::string text = join_texts_of_ranks(all(), text_of(own), join_results, fault_);
    agree(all(), fault_);
    const TaskResult whole = leads_all() ? parse_result(text) : TaskResult{};
    outcome_.not_finite = whole.not_finite;
    outcome_.work_seconds += whole.seconds;
    outcome_.writer_cpu_seconds += whole.cpu_seconds;
    outcome_.not_finite = broadcast_text(all(), outcome_.not_finite);
    if (!outcome_.not_finite.empty()) return;
    outcome_.digest = broadcast_text(all(), digest_text(whole.digest));
    phase_ = Phase::publishing;
    outcome_.keep = keep;
    attempt(fault_, [&] {
      if (leads_all()) start_publisher(whole.text, keep);
    });
  }

  void start_publisher(const std::string& fragment, index_t keep) {
    PublishTask task{options_, {}, state_, fragment, partial_, owner_};
    task.options.keep = keep;
    if (options_.lock != nullptr) task.lease = *options_.lock;
    task.state.texts[kDigestText] = outcome_.digest;
    process_ =
        std::make_unique<WriterProcess>("publish", text_of(task), -1, limit_seconds_, cores_);
  }

  bool end_publishing() {
    TaskResult own;
    attempt(fault_, [&] { own = take_result(); });
    agree(all(), fault_);
    outcome_.work_seconds += own.seconds;
    outcome_.writer_cpu_seconds += own.cpu_seconds;
    outcome_.path = broadcast_text(all(), own.text);
    return true;
  }

  SaveOutcome end() {
    phase_ = Phase::none;
    outcome_.seconds = seconds_since(began_);
    return std::move(outcome_);
  }

  CheckpointOptions options_;
  std::string without_;
  double limit_seconds_;
  SaveGroups groups_;
  std::string owner_, cores_;
  // As long as the ranks' parts stay as they are:
  std::string description_;
  std::vector<std::string> descriptions_;  // of the group
  std::unique_ptr<SavePlan> plan_;
  std::optional<SnapshotLayout> layout_;
  std::optional<SnapshotMemory> memory_;
  double bytes_ = 0;  // of all tensors; on rank 0
  // Of the checkpoint under way:
  Phase phase_ = Phase::none;
  CheckpointState state_;
  std::string partial_, mark_;
  std::unique_ptr<WriterProcess> process_;
  std::optional<Error> fault_;
  SaveOutcome outcome_;
  Clock::time_point began_;
};

BackgroundSave::BackgroundSave(Communicator& world, const CheckpointOptions& options,
                               std::string digest_without, double limit_seconds)
    : impl_(std::make_unique<Impl>(world, options, std::move(digest_without), limit_seconds)) {}
BackgroundSave::~BackgroundSave() = default;

void BackgroundSave::prepare(const std::vector<TensorPart>& parts) { impl_->prepare(parts); }
void BackgroundSave::begin(const CheckpointState& state, const std::vector<TensorPart>& parts) {
  impl_->begin(state, parts);
}
index_t BackgroundSave::pending() const { return impl_->pending(); }
bool BackgroundSave::busy() { return impl_->busy(); }
std::optional<SaveOutcome> BackgroundSave::advance(index_t keep) { return impl_->advance(keep); }
SaveOutcome BackgroundSave::settle(index_t keep) { return impl_->settle(keep); }

}  // namespace t3d
