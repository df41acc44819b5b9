// How much of files was read: what a test of a long file looks at, rather than at times.
#pragma once
#include <fstream>
#include <string>

#include "core/types.hpp"

namespace t3d::test {

/// By read() and its like, of this process.
inline index_t bytes_read_so_far() {
  std::ifstream counts("/proc/self/io");
  std::string name;
  index_t bytes = 0;
  while (counts >> name >> bytes)
    if (name == "rchar:") return bytes;
  return 0;
}

}  // namespace t3d::test
