// A long 1-D data set with a CRC32C of each MiB, started from its name and the block's number: it
// is written in pieces, and read anywhere. A block is compared the first time somebody reads from
// it.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "io/hdf5/h5_file.hpp"

namespace t3d {

/// Its element: a little-endian unsigned integer.
struct ArrayElement {
  std::string name;   // of the data set
  index_t bytes = 0;  // 1, 2, 4 or 8
};

class CheckedArrayWriter {
 public:
  /// `file` must outlive it.
  CheckedArrayWriter(const H5File& file, ArrayElement element);
  void append(const void* values, index_t count);
  /// Writes what is left. CRCs of the blocks.
  [[nodiscard]] std::vector<std::uint32_t> finish();

 private:
  void flush();
  const H5File& file_;
  ArrayElement element_;
  H5Id dataset_;
  std::vector<std::byte> block_;
  std::vector<std::uint32_t> crcs_;
};

class CheckedArrayReader {
 public:
  /// `file` must outlive it. Error(io) when the data set is not there, is not `count` elements
  /// long, or there are not as many CRCs as blocks.
  CheckedArrayReader(const H5File& file, ArrayElement element, index_t count,
                     std::vector<std::uint32_t> crcs);
  /// Error(io) when a block that it touches is damaged. Each is looked at once, and once more after
  /// the file has changed: HDF5 reads zeros behind the end of one that was cut.
  void read(index_t first, index_t count, void* out);
  /// Reads and compares every block.
  void verify();

 private:
  /// Size, time of change, number of the file.
  using Stamp = std::array<std::int64_t, 4>;
  [[nodiscard]] Stamp stamp() const;
  void look_for_changes();
  void verify_block(index_t block);
  const H5File& file_;
  ArrayElement element_;
  index_t count_ = 0;
  H5Id dataset_;
  std::vector<std::uint32_t> crcs_;
  std::vector<bool> verified_;
  Stamp stamp_{};
  double looked_ = 0;  // seconds
  bool changed_ = false;
  std::vector<std::byte> block_;
};

}  // namespace t3d
