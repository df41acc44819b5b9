// The little of HDF5 that we use, with its error stack turned into Error(io). The library is the
// serial one and not thread-safe, while ranks may be threads: every entry holds one process-wide
// lock. Internal to `io`: includes the HDF5 header.
#pragma once
#include <hdf5.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/box.hpp"
#include "core/dtype.hpp"
#include "core/types.hpp"

namespace t3d {

/// Holds the lock and keeps the library from printing.
class H5Guard {
 public:
  H5Guard();

 private:
  std::lock_guard<std::recursive_mutex> lock_;
};

/// One id, closed with its own function.
class H5Id {
 public:
  using Close = herr_t (*)(hid_t);
  H5Id() = default;
  /// Throws "cannot <what>: reason" for a negative id.
  H5Id(hid_t id, Close closer, const std::string& what);
  H5Id(H5Id&& other) noexcept
      : id_(std::exchange(other.id_, -1)), close_(other.close_), what_(std::move(other.what_)) {}
  H5Id& operator=(H5Id&& other) noexcept;
  ~H5Id();
  [[nodiscard]] hid_t get() const { return id_; }
  /// Closes now and throws if that fails.
  void close();

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
  std::string what_;
};

/// Throws "cannot <what>: reason" when `status` is negative.
void h5_check(herr_t status, const std::string& what);

[[nodiscard]] hid_t h5_type(DType type);
/// Link properties that create the groups on the way.
[[nodiscard]] H5Id h5_link_with_parents();

/// Where a part of a virtual data set lies.
struct H5Source {
  std::string file, dataset;
  Box box;
};

class H5File {
 public:
  static H5File create(const std::string& path);
  static H5File open(const std::string& path);
  H5File(H5File&&) noexcept = default;
  H5File& operator=(H5File&&) noexcept = default;
  ~H5File();

  [[nodiscard]] hid_t id() const { return file_.get(); }
  [[nodiscard]] const std::string& path() const { return path_; }

  /// A contiguous data set with its space allocated, not filled; open for write_rows.
  [[nodiscard]] H5Id create_contiguous(const std::string& name, hid_t type, index_t rows,
                                       index_t cols, bool vector) const;
  void write_rows(const H5Id& dataset, hid_t type, index_t first_row, index_t rows, index_t cols,
                  bool vector, const void* data) const;
  /// Byte of the file at which a contiguous data set starts.
  [[nodiscard]] index_t offset_of(const H5Id& dataset) const;
  /// Reads as NaN (integers: the lowest) where a source is missing.
  void create_virtual(const std::string& name, DType type, index_t rows, index_t cols, bool vector,
                      const std::vector<H5Source>& sources) const;

  /// A 1-D chunked data set that append() makes longer.
  [[nodiscard]] H5Id create_growing(const std::string& name, hid_t type, index_t chunk) const;
  void append(const H5Id& dataset, hid_t type, index_t count, const void* data) const;
  [[nodiscard]] H5Id open_dataset(const std::string& name) const;
  /// Error(io) unless the data set is 1-D.
  [[nodiscard]] index_t length_of(const H5Id& dataset) const;
  /// Of a 1-D data set.
  void read_range(const H5Id& dataset, hid_t type, index_t first, index_t count, void* out) const;

  void write_text(const std::string& name, const std::string& text) const;
  void write_attribute(const std::string& name, std::int64_t value) const;
  void write_attribute(const std::string& name, const std::string& text) const;
  /// Attributes of one value each. Error(io) when one is an array or of another class.
  [[nodiscard]] std::int64_t read_integer(const std::string& name) const;
  [[nodiscard]] std::string read_string(const std::string& name) const;
  [[nodiscard]] bool has(const std::string& name) const;
  [[nodiscard]] bool has_attribute(const std::string& name) const;

  /// Flushes and closes; throws if the system said no at any point.
  void close();

 private:
  H5File(H5Id file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  [[nodiscard]] std::string what(const char* verb, const std::string& name) const;
  H5Id file_;
  std::string path_;
};

}  // namespace t3d
