// Which parameters a run does not train: those whose names match a pattern of model.freeze, and
// with adapters ([lora]) all but these. A frozen bucket has weights, and neither gradients nor
// state.
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "core/options.hpp"

namespace t3d {

/// '*' stands for any letters, also none; every other letter for itself.
[[nodiscard]] bool matches(std::string_view pattern, std::string_view name);
[[nodiscard]] bool is_adapter(std::string_view parameter);
[[nodiscard]] bool is_frozen(const ModelConfig& model, std::string_view parameter);

/// Of all parameters, adapters too. The vocabulary need not be known.
[[nodiscard]] std::vector<std::string> parameter_names(const ModelConfig& model);

/// Elements of the model's parameters, adapters too.
struct ParameterCounts {
  index_t all = 0, trained = 0;
  index_t with_state = 0;  // of buckets that are not frozen
};
[[nodiscard]] ParameterCounts parameter_counts(const ModelConfig& model);

/// The frozen ones of a model's buckets (tensor3d/parameters.hpp), the same on every rank: a bucket
/// is frozen where all of its parameters are.
struct FrozenBuckets {
  /// Nothing is frozen.
  FrozenBuckets() = default;
  explicit FrozenBuckets(const ModelConfig& model);

  bool table = false, hidden_vectors = false, inner_vectors = false, head_vectors = false,
       head = false;                        // untied; adapters never are
  std::vector<std::array<bool, 4>> blocks;  // by block and matrix; empty = none

  [[nodiscard]] bool matrix(index_t block, std::size_t kind) const {
    return !blocks.empty() && blocks[static_cast<std::size_t>(block)][kind];
  }
  /// Every block has the same frozen matrices.
  [[nodiscard]] bool alike() const;
  /// Blocks whose matrix of this kind is frozen.
  [[nodiscard]] index_t count(std::size_t kind) const;
};

}  // namespace t3d
