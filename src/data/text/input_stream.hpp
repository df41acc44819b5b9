// A file's text from a place on: as it lies, or decompressed on the way (*.zst).
#pragma once
#include <memory>
#include <string>

#include "core/types.hpp"

namespace t3d {

class InputStream {
 public:
  virtual ~InputStream() = default;
  /// Up to `most` (> 0) bytes; 0 only at the end. Error(io).
  virtual index_t read(char* out, index_t most) = 0;
};

/// By the ending of the name.
[[nodiscard]] bool is_compressed(const std::string& path);

/// Error(no_input) when it does not exist, Error(io) where it cannot be read, or is not whole as a
/// compressed file. `begin`: of a compressed file, 0.
[[nodiscard]] std::unique_ptr<InputStream> open_stream(const std::string& path, index_t begin = 0);

}  // namespace t3d
