// A file of safetensors (huggingface.co/docs/safetensors, "Format"): 8 bytes little-endian length
// of a header, the header as JSON, then the numbers of all tensors without holes.
//
//   {"__metadata__": {"format": "pt"}, "NAME": {"dtype": "F32", "shape": [2, 3],
//    "data_offsets": [0, 24]}, ...}
//
// Only the header is held in memory.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.hpp"
#include "core/types.hpp"
#include "io/partial_file.hpp"
#include "io/posix_file.hpp"

namespace t3d {

/// "F32" and so on; nothing for formats that are no numbers of ours (I64, F8_E4M3, ...).
[[nodiscard]] std::optional<DType> dtype_of_safetensors(std::string_view name);
/// Error(config) for int32, which no weight is.
[[nodiscard]] std::string_view safetensors_name(DType dtype);

struct SafetensorsEntry {
  std::string dtype;           // as written
  std::vector<index_t> shape;  // row-major
  index_t begin = 0, end = 0;  // bytes, in the file
};
using SafetensorsHeader = std::map<std::string, SafetensorsEntry>;

/// Longer headers are refused, as by other readers.
inline constexpr index_t kMostHeaderBytes = 100'000'000;

/// The header's text; the numbers begin at byte `data_begin` of a file of `file_bytes`. Error(io),
/// naming `path`, when it is no JSON, a name is there twice, a dtype is not known, or offsets
/// overlap, leave holes, lie outside or do not fit the shape.
[[nodiscard]] SafetensorsHeader parse_safetensors_header(std::string_view text, index_t data_begin,
                                                         index_t file_bytes,
                                                         const std::string& path);

class SafetensorsReader {
 public:
  /// Error(no_input) when it does not exist, Error(io) when it is no whole file of safetensors.
  explicit SafetensorsReader(const std::string& path);
  [[nodiscard]] const std::string& path() const { return file_.path(); }
  [[nodiscard]] const SafetensorsHeader& tensors() const { return header_; }
  /// `count` numbers from number `first` of a tensor on, as `to` (fp32 or fp64). Error(io) when the
  /// tensor's numbers are none of ours.
  void read(const SafetensorsEntry& tensor, index_t first, index_t count, DType to,
            void* out) const;

 private:
  FileReader file_;
  SafetensorsHeader header_;
};

/// Writes tensors one after another; the file has its name when it is whole.
class SafetensorsWriter {
 public:
  struct Tensor {
    std::string name;
    DType dtype = DType::f32;
    std::vector<index_t> shape;
  };
  /// All tensors, in the order in which they will be written. Error(io).
  SafetensorsWriter(const std::string& path, const std::vector<Tensor>& tensors);
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;
  /// The next `count` numbers (fp32 or fp64), stored as the dtype of the tensor that they belong
  /// to.
  void write(DType from, const void* numbers, index_t count);
  /// fsync and the name. All numbers must have been written.
  void finish();

 private:
  void store(const void* data, index_t bytes);
  PartialFile partial_;
  int fd_ = -1;
  std::vector<Tensor> tensors_;
  std::size_t at_ = 0;  // tensor that comes next
  index_t left_ = 0;    // numbers of it that are to come
  std::vector<std::byte> converted_;
};

/// Numbers of one format as those of another; fp32, fp64, bf16 or fp16 either way.
void convert_numbers(DType from, const void* in, DType to, void* out, index_t count);

}  // namespace t3d
