// Saving: every group of ranks sends its boxes to its first rank, which writes the group's node
// file; rank 0 checks that all elements are there once, writes the master and gives the folder its
// name.
#include "comm/agree.hpp"
#include "core/error.hpp"
#include "io/checkpoint/checkpoint_files.hpp"
#include "io/checkpoint/node_file.hpp"
#include "io/checkpoint/save_steps.hpp"
#include "io/lock/lease.hpp"
#include "io/lock/lock_owner.hpp"

namespace t3d {
namespace {

class Saver {
 public:
  Saver(Communicator& world, const CheckpointOptions& options, const CheckpointState& state,
        const std::vector<TensorPart>& parts)
      : options_(options),
        state_(state),
        parts_(parts),
        groups_(world, options.ranks_per_file),
        owner_(options.lock != nullptr ? options.lock->token : random_token()) {}

  std::string run(bool write) {
    make_plan(write);
    choose_folder();
    try {
      write_files();
      publish();
    } catch (const AgreedError&) {  // all ranks are here; any other error ends the job
      if (leads()) remove_checkpoint(partial_, owner_);
      // Nobody leaves before: a rank that ends by this error would break the group for the leader.
      groups_.all->barrier();
      throw;
    }
    if (leads() && options_.retain) apply_retention(options_, state_, path_, owner_);
    groups_.all->barrier();
    return path_;
  }

 private:
  [[nodiscard]] bool leads() const { return groups_.all->rank() == 0; }
  void agree_now() { agree(*groups_.all, fault_); }
  void check_lock() const {
    if (options_.lock != nullptr) options_.lock->check();
  }

  void make_plan(bool write) {
    std::string description;
    attempt(fault_, [&] { description = describe_parts(parts_, write); });
    const auto descriptions = all_gather_texts(*groups_.group, description);
    attempt(fault_, [&] { plan_ = std::make_unique<SavePlan>(descriptions); });
    agree_now();
  }

  /// Rank 0 checks that all is there and fits, and makes the folder; all take its words for the
  /// run's name and step, which the CRCs start from.
  void choose_folder() {
    const bool first = groups_.group->rank() == 0;
    std::string text;
    attempt(fault_, [&] {
      if (first) text = text_of(plan_->fragment());
    });
    text = join_texts_of_ranks(*groups_.all, text, join_texts, fault_);
    agree_now();  // what one rank lacks would look to rank 0 as if boxes were missing
    attempt(fault_, [&] {
      if (!leads()) return;
      const Fragment whole = parse_fragment(text);
      check_cover(whole);
      make_folder(options_.dir);
      check_lock();
      check_space(options_.dir, tensor_bytes(whole));
      partial_ = make_partial_folder(options_.dir, state_, owner_);
    });
    agree_now();
    partial_ = broadcast_text(*groups_.all, partial_);
    mark_ = broadcast_text(*groups_.all, random_token().substr(0, 8));
    state_.run_id = broadcast_text(*groups_.all, state_.run_id);
    state_.step = std::stoll(broadcast_text(*groups_.all, std::to_string(state_.step)));
  }

  void write_files() {
    const std::string name = node_file_name(groups_.file_number, state_, mark_);
    const bool writes = groups_.group->rank() == 0 && !plan_->rounds().empty();
    std::optional<NodeFile> file;
    RoundBuffers buffers(*plan_, parts_, groups_.group->rank());
    attempt(fault_, [&] {
      if (writes) file.emplace(partial_, name, *plan_, state_);
      buffers.reserve(groups_.group->size());
    });
    agree_now();  // from here on everybody can send and receive
    for (const auto& round : plan_->rounds()) {
      buffers.gather(*groups_.group,
                     round);  // communicates whether or not the file is still in order
      attempt(fault_, [&] {
        if (writes) buffers.write(round, *file);
      });
    }
    attempt(fault_, [&] {
      if (writes)
        fragment_ = text_of(file->finish(options_.verify));
      else if (groups_.group->rank() == 0)
        fragment_ = text_of(plan_->fragment());  // tensors without elements
    });
    file.reset();
    agree_now();
  }

  void publish() {
    const std::string text = join_texts_of_ranks(*groups_.all, fragment_, join_texts, fault_);
    agree_now();
    attempt(fault_, [&] {
      if (!leads()) return;
      path_ = publish_checkpoint(options_, state_, parse_fragment(text), partial_, owner_);
    });
    agree_now();
    path_ = broadcast_text(*groups_.all, path_);
  }

  const CheckpointOptions& options_;
  CheckpointState state_;
  const std::vector<TensorPart>& parts_;
  SaveGroups groups_;
  std::unique_ptr<SavePlan> plan_;
  std::string owner_;           // in the names of unfinished folders
  std::string mark_;            // in the names of this save's files
  std::string partial_, path_;  // before and after publishing
  std::string fragment_;
  std::optional<Error> fault_;
};

}  // namespace

std::string save_checkpoint(Communicator& world, const CheckpointOptions& options,
                            const CheckpointState& state, const std::vector<TensorPart>& parts,
                            bool write) {
  return Saver(world, options, state, parts).run(write);
}

}  // namespace t3d
