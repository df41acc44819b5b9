// A global tensor by name and shape, without its numbers.
#pragma once
#include <string>

#include "core/types.hpp"

namespace t3d {

struct WholeTensor {
  std::string name;
  index_t rows = 0, cols = 0;  // vectors: [1, n]
  bool vector = false;
  bool vocabulary = false;  // a row for each token
};

}  // namespace t3d
