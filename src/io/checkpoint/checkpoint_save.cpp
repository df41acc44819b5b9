// Saving: every group of ranks sends its boxes to its first rank, which writes the group's node
// file; rank 0 checks that all elements are there once, writes the master and gives the folder its
// name.
#include <fmt/core.h>

#include <cctype>
#include <cstring>
#include <numeric>

#include "comm/agree.hpp"
#include "core/error.hpp"
#include "core/random.hpp"
#include "device/host_limits.hpp"
#include "io/checkpoint/checkpoint_files.hpp"
#include "io/checkpoint/checkpoint_group.hpp"
#include "io/checkpoint/node_file.hpp"
#include "io/lock/lock_owner.hpp"
#include "io/lock/run_lock.hpp"

namespace t3d {
namespace {

constexpr double kSpare = 1.02;  // metadata and CRCs on top of the numbers

/// Groups of ranks that share a file, in the order of their first ranks.
std::vector<std::vector<int>> file_groups(Communicator& all, index_t ranks_per_file) {
  std::vector<std::vector<int>> groups;
  std::map<std::string, std::size_t> by_key;
  const auto hosts = all_gather_texts(all, host_name());
  for (int rank = 0; rank < all.size(); ++rank) {
    const std::string key = ranks_per_file > 0 ? std::to_string(rank / ranks_per_file)
                                               : hosts[static_cast<std::size_t>(rank)];
    const auto [place, fresh] = by_key.try_emplace(key, groups.size());
    if (fresh) groups.emplace_back();
    groups[place->second].push_back(rank);
  }
  return groups;
}

void check_cover(const Manifest& manifest) {
  for (const auto& [name, tensor] : manifest.tensors) {
    const std::string fault = cover_fault(boxes_of(tensor), tensor.rows, tensor.cols);
    if (!fault.empty()) throw_error(ExitCode::io, "cannot save {}: {}", name, fault);
  }
}

double bytes_of(const Manifest& manifest) {
  double bytes = 0;
  for (const auto& [name, tensor] : manifest.tensors)
    bytes += static_cast<double>(tensor.rows * tensor.cols * size_of(tensor.dtype));
  return bytes;
}

void check_space(const std::string& dir, double bytes) {
  const double needed = bytes * kSpare + (1 << 20);
  const double free = free_bytes(dir);
  if (needed > free)
    throw_error(ExitCode::io, "not enough space for a checkpoint in {}: {} needed, {} free", dir,
                format_bytes(needed), format_bytes(free));
}

/// A name that no other checkpoint has: a master file in the wrong folder finds nothing there.
std::string node_file_name(std::size_t number, const CheckpointState& state,
                           const std::string& mark) {
  constexpr std::size_t kMost = 40;
  std::string run = state.run_id.substr(0, kMost);
  for (char& letter : run) {
    const bool plain = std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '-';
    if (!plain) letter = '_';
  }
  return fmt::format("node-{:05}.{}.step-{:08}.{}.h5", number, run, state.step, mark);
}

Manifest assemble(const CheckpointState& state, const std::vector<std::string>& fragments) {
  Manifest manifest;
  manifest.state = state;
  for (const std::string& fragment : fragments)
    if (!fragment.empty()) add_fragment(manifest, fragment);
  return manifest;
}

class Saver {
 public:
  Saver(Communicator& world, const CheckpointOptions& options, const CheckpointState& state,
        const std::vector<TensorPart>& parts)
      : options_(options),
        state_(state),
        parts_(parts),
        all_(checkpoint_group(world)),
        owner_(options.lock != nullptr ? options.lock->token() : random_token()) {}

  std::string run(bool write) {
    make_plan(write);
    choose_folder();
    try {
      write_files();
      publish();
    } catch (const AgreedError&) {  // all ranks are here; any other error ends the job
      if (leads()) remove_checkpoint(partial_, owner_);
      // Nobody leaves before: a rank that ends by this error would break the group for the leader.
      all_->barrier();
      throw;
    }
    if (leads()) apply_retention(options_, state_, path_, owner_);
    all_->barrier();
    return path_;
  }

 private:
  [[nodiscard]] bool leads() const { return all_->rank() == 0; }
  void agree_now() { agree(*all_, fault_); }
  void check_lock() const {
    if (options_.lock != nullptr) options_.lock->check();
  }

  void make_plan(bool write) {
    const auto groups = file_groups(*all_, options_.ranks_per_file);
    for (std::size_t n = 0; n < groups.size(); ++n)
      for (const int rank : groups[n])
        if (rank == all_->rank()) file_number_ = n;
    group_ = all_->subgroup(groups[file_number_], kCheckpointAxis);
    std::string description;
    attempt(fault_, [&] { description = describe_parts(parts_, write); });
    const auto descriptions = all_gather_texts(*group_, description);
    attempt(fault_, [&] { plan_ = std::make_unique<SavePlan>(descriptions); });
    agree_now();
  }

  /// Rank 0 checks that all is there and fits, and makes the folder; all take its words for the
  /// run's name and step, which the CRCs start from.
  void choose_folder() {
    const bool first = group_->rank() == 0;
    const auto fragments = gather_texts(*all_, first ? format_fragment(plan_->fragment()) : "");
    attempt(fault_, [&] {
      if (!leads()) return;
      const Manifest manifest = assemble(state_, fragments);
      check_cover(manifest);
      make_folder(options_.dir);
      check_lock();
      check_space(options_.dir, bytes_of(manifest));
      partial_ = make_partial_folder(options_.dir, state_, owner_);
    });
    agree_now();
    partial_ = broadcast_text(*all_, partial_);
    mark_ = broadcast_text(*all_, random_token().substr(0, 8));
    state_.run_id = broadcast_text(*all_, state_.run_id);
    state_.step = std::stoll(broadcast_text(*all_, std::to_string(state_.step)));
  }

  void write_files() {
    const std::string name = node_file_name(file_number_, state_, mark_);
    const bool writes = group_->rank() == 0 && !plan_->rounds().empty();
    std::optional<NodeFile> file;
    RoundBuffers buffers(*plan_, parts_, group_->rank());
    attempt(fault_, [&] {
      if (writes) file.emplace(partial_, name, *plan_, state_);
      buffers.reserve(group_->size());
    });
    agree_now();  // from here on everybody can send and receive
    for (const auto& round : plan_->rounds()) {
      buffers.gather(*group_, round);  // communicates whether or not the file is still in order
      attempt(fault_, [&] {
        if (writes) buffers.write(round, *file);
      });
    }
    attempt(fault_, [&] {
      if (writes)
        fragment_ = format_fragment(file->finish(options_.verify));
      else if (group_->rank() == 0)
        fragment_ = format_fragment(plan_->fragment());  // tensors without elements
    });
    file.reset();
    agree_now();
  }

  void publish() {
    const auto fragments = gather_texts(*all_, fragment_);
    attempt(fault_, [&] {
      if (!leads()) return;
      Manifest manifest = assemble(state_, fragments);
      const ManifestFile master = write_master(partial_, manifest, options_.verify);
      manifest.files.push_back(master);
      sync_path(partial_);
      write_text_durably(partial_ + "/" + kManifestName, format_manifest(manifest));
      check_lock();
      path_ = publish_folder(partial_, options_.dir, state_, owner_);
    });
    agree_now();
    path_ = broadcast_text(*all_, path_);
  }

  const CheckpointOptions& options_;
  CheckpointState state_;
  const std::vector<TensorPart>& parts_;
  std::unique_ptr<Communicator> all_, group_;
  std::unique_ptr<SavePlan> plan_;
  std::size_t file_number_ = 0;
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
