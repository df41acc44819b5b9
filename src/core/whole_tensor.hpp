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

/// Rows [row0, row0 + rows) of the matrix `weight`, to which factor * B A is added: A are the rows
/// [low0, low0 + rank) of `a`, B the rows [b_row0, b_row0 + rows) of `b` [.., rank].
struct AdaptedPart {
  std::string weight, a, b;
  std::string target;  // a word of kLoraTargets
  index_t row0 = 0, rows = 0, b_row0 = 0, low0 = 0, rank = 0;
  index_t in = 0;  // columns of the matrix and of A
  double factor = 1;
};

}  // namespace t3d
