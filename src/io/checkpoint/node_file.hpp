// The node file of a group of ranks: gathering the boxes round by round and writing them in order.
// Internal to `io`.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint_plan.hpp"
#include "io/crc32c.hpp"
#include "io/hdf5/h5_file.hpp"

namespace t3d {

/// Writes strips in the order of the plan.
class NodeFile {
 public:
  NodeFile(const std::string& folder, const std::string& name, const SavePlan& plan,
           const CheckpointState& state);
  void write(const Strip& strip, const void* data);
  /// Closes, syncs, writes the index, and with `verify` reads everything again: for the manifest.
  [[nodiscard]] Fragment finish(bool verify);

 private:
  void end_piece();
  void write_table();
  void write_index();

  std::string folder_;
  H5File file_;
  const SavePlan& plan_;
  CheckpointState state_;  // run and step
  ManifestFile entry_;
  FileIndex index_;
  H5Id dataset_;
  BlockCrcs crcs_{0};
  std::vector<std::uint32_t> table_;
};

/// What is in flight in one round: this rank's elements packed; at the writer, everybody's.
class RoundBuffers {
 public:
  RoundBuffers(const SavePlan& plan, const std::vector<TensorPart>& parts, int rank)
      : plan_(plan), parts_(parts), rank_(rank) {}
  /// Takes the memory for the largest round of a group of `ranks`, so that gather() finds it there.
  void reserve(int ranks);
  /// Collective over the group: rank 0 receives what the others hold of the strips.
  void gather(Communicator& group, const std::vector<Strip>& round);
  /// On rank 0: puts every strip together and writes it.
  void write(const std::vector<Strip>& round, NodeFile& file);

 private:
  /// Bytes of the strips by rank of the group.
  [[nodiscard]] std::vector<index_t> bytes_of(const std::vector<Strip>& round, int ranks) const;
  void pack(const std::vector<Strip>& round);
  /// First byte, in this rank's own buffers, of the elements of `copy`.
  [[nodiscard]] const std::byte* own_memory(const Copy& copy, index_t element_bytes) const {
    return static_cast<const std::byte*>(
               parts_[static_cast<std::size_t>(copy.holding->part)].data) +
           copy.piece.from_offset * element_bytes;
  }

  const SavePlan& plan_;
  const std::vector<TensorPart>& parts_;
  int rank_ = 0;
  std::vector<std::byte> packed_;
  std::vector<std::vector<std::byte>> received_;  // per rank
  std::vector<std::byte> strip_;
};

}  // namespace t3d
