// StateBuffers: one kind of state per parameter element ("m", "v", "momentum"), a buffer of shard
// size per bucket, in the accumulator's type.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tensor3d/param_bucket.hpp"

namespace t3d {

/// Which buckets have a kind of state; the same ones on every rank.
using HasState = std::function<bool(const ParamBucket&)>;

class StateBuffers {
 public:
  /// Nothing is allocated before clear() or adopt().
  StateBuffers(std::string kind, const Context& context, const std::vector<ParamBucket*>& buckets,
               const HasState& has_state = {});

  [[nodiscard]] const std::string& kind() const { return kind_; }
  [[nodiscard]] bool has(std::size_t bucket) const { return has_[bucket]; }
  /// [1, shard]; empty data where the bucket has no such state.
  [[nodiscard]] TensorView operator[](std::size_t bucket) const { return shards_[bucket]; }
  [[nodiscard]] std::vector<TensorView> views() const { return {shards_.begin(), shards_.end()}; }

  /// Zeros everywhere.
  void clear();
  /// State on its way from and to another formation.
  [[nodiscard]] Tensor take(std::size_t bucket) { return std::move(shards_[bucket]); }
  void adopt(std::size_t bucket, Tensor shard);

 private:
  std::string kind_;
  const Context& context_;
  std::vector<ParamBucket*> buckets_;
  std::vector<bool> has_;
  std::vector<Tensor> shards_;
};

}  // namespace t3d
