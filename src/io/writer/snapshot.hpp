// The state of a group of ranks as it was after one step, in memory that they share with the
// process that writes it. Internal to `io`.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint_plan.hpp"

namespace t3d {

/// Where every rank's boxes lie, in bytes: rank after rank, each box as the rank has it.
class SnapshotLayout {
 public:
  /// `plan` must outlive it.
  explicit SnapshotLayout(const SavePlan& plan);
  [[nodiscard]] index_t bytes() const { return bytes_; }
  [[nodiscard]] index_t place_of(const Holding& holding) const { return places_.at(&holding); }
  /// Copies the boxes of one rank of the group there: as `parts` were described to the plan.
  void copy(int rank, const std::vector<TensorPart>& parts, std::byte* snapshot) const;
  /// A strip as it lies in the file; `merged` is where it is put together if it has to be.
  [[nodiscard]] const std::byte* strip(const Strip& strip, const std::byte* snapshot,
                                       std::vector<std::byte>& merged) const;

 private:
  struct Place {
    const Holding* holding = nullptr;
    index_t element_bytes = 0;
  };
  const SavePlan& plan_;
  std::vector<Place> holdings_;  // of all ranks, rank after rank
  std::map<const Holding*, index_t> places_;
  index_t bytes_ = 0;
};

/// Memory without a name, which other processes of this node map too.
class SnapshotMemory {
 public:
  /// New memory, taken from the system now: what cannot be had is an Error(unavailable), not the
  /// end of a process that writes there.
  [[nodiscard]] static SnapshotMemory made(index_t bytes);
  /// That of another process: `name` is its name(). Error(unavailable) where it cannot be reached.
  [[nodiscard]] static SnapshotMemory joined(const std::string& name, index_t bytes);
  /// That of an open file, for reading.
  [[nodiscard]] static SnapshotMemory opened(int file, index_t bytes);
  SnapshotMemory(SnapshotMemory&& other) noexcept;
  SnapshotMemory& operator=(SnapshotMemory&& other) noexcept;
  ~SnapshotMemory();

  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(start_) + kHead; }
  [[nodiscard]] index_t bytes() const { return bytes_; }
  /// Of made() memory: how other processes find it, and know it.
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] int file() const { return file_; }

 private:
  static constexpr std::size_t kHead = 4096;  // bytes before the data, a page: a token
  SnapshotMemory() = default;
  void map(bool writable);
  void give_back() noexcept;

  int file_ = -1;
  bool owns_file_ = true;
  void* start_ = nullptr;
  index_t bytes_ = 0;
  std::string name_;
};

}  // namespace t3d
