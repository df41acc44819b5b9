// A whole small model on any cuboid, ranks as threads of the test: set weights by formula, run
// passes, read global gradients and logits back.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "support/plan.hpp"
#include "support/rank_context.hpp"
#include "train/step/trainer.hpp"

namespace t3d::test {

/// Global tensors by name, as dense doubles; filled by several ranks at once.
struct GlobalTensors {
  std::mutex mutex;
  std::map<std::string, std::vector<double>> values;
};

/// Calls visit(name, global index, local element view) for every element of this rank's shares; of
/// gradients those that are trained. Vectors have global index = element number.
inline void for_each_element(
    Transformer& model, bool gradients,
    const std::function<void(const ParamEntry&, index_t, TensorView, index_t)>& visit) {
  for (ParamBucket* bucket : model.buckets()) {
    TensorView shard = gradients ? bucket->gradient_shard() : bucket->master();
    for (const ParamEntry& entry : bucket->entries()) {
      if (gradients && entry.frozen) continue;
      for (const PlacedBox& piece : bucket->shard_boxes(entry))
        for (index_t r = 0; r < piece.box.rows; ++r)
          for (index_t c = 0; c < piece.box.cols; ++c)
            visit(entry, (piece.box.row0 + r) * entry.cols + piece.box.col0 + c, shard,
                  piece.offset + r * piece.box.cols + c);
    }
  }
}

inline void set_weights(Transformer& model,
                        const std::function<double(const std::string&, index_t)>& value) {
  for_each_element(model, false,
                   [&](const ParamEntry& entry, index_t index, TensorView shard, index_t at) {
                     set(shard, 0, at, value(entry.name, index));
                   });
  model.weights_changed();
}

inline void collect(Transformer& model, bool gradients, GlobalTensors& out) {
  const std::lock_guard lock(out.mutex);
  for_each_element(model, gradients,
                   [&](const ParamEntry& entry, index_t index, TensorView shard, index_t at) {
                     auto& dense = out.values[entry.name];
                     dense.resize(static_cast<std::size_t>(entry.rows * entry.cols));
                     dense[static_cast<std::size_t>(index)] = get(shard, 0, at);
                   });
}

/// The sequences of this rank's slab of a batch held whole by every rank.
struct SlabBatch {
  SlabBatch(const Transformer& model, const Mesh& mesh, const std::vector<std::int32_t>& ids,
            const std::vector<std::int32_t>& targets, index_t sequences) {
    const index_t length = model.shape().model.context;
    const Partition slabs = model.shape().tokens(sequences, length);
    const index_t i = mesh.coord().i;
    batch.sequences = sequences;
    const auto first = static_cast<std::size_t>(slabs.begin(i));
    const auto n = static_cast<std::size_t>(slabs.size(i));
    batch.ids = {ids.data() + first, n};
    batch.targets = {targets.data() + first, n};
  }
  MicroBatch batch;
};

inline Config tiny_gpt() {
  Config config;
  config.model = {};
  config.model.layers = 2;
  config.model.hidden = 32;
  config.model.heads = 4;
  config.model.kv_heads = 4;
  config.model.ffn = 128;
  config.model.vocab = 61;
  config.model.context = 16;
  config.batch.sequences = 3;
  config.precision.compute = ComputeType::fp32;
  config.precision.backend = BackendRule::reference;
  return config;
}

inline Config tiny_llama() {
  Config config = tiny_gpt();
  config.model.hidden = 48;
  config.model.heads = 6;
  config.model.kv_heads = 2;
  config.model.ffn = 80;
  config.model.norm = NormKind::rms;
  config.model.activation = Activation::swiglu;
  config.model.position = Position::rope;
  config.model.bias = false;
  config.model.tied_embeddings = false;
  return config;
}

/// Biases of queries, keys and values alone; rotations stretched as in YaRN.
inline Config tiny_qwen2() {
  Config config = tiny_llama();
  config.model.kv_heads = 3;
  config.model.attention_bias = AttentionBias::qkv;
  config.model.rope = {
      .base = 100, .scaling = RopeScaling::yarn, .factor = 4, .original_context = 256};
  return config;
}

/// Heads that are not hidden / heads wide, and normed; rotations stretched as in Llama 3.
inline Config tiny_qwen3() {
  Config config = tiny_llama();
  config.model.kv_heads = 3;
  config.model.head_columns = 12;
  config.model.qk_norm = true;
  config.model.tied_embeddings = true;
  config.model.rope = {
      .base = 100, .scaling = RopeScaling::llama3, .factor = 8, .original_context = 8};
  return config;
}

/// Adapters on parts of all four linears, beside biases of queries, keys and values.
inline Config tiny_lora() {
  Config config = tiny_llama();
  config.model.kv_heads = 3;
  config.model.attention_bias = AttentionBias::qkv;
  config.model.lora = {.rank = 4, .alpha = 6, .targets = {"q", "v", "o", "up", "down"}};
  return config;
}

/// Some blocks, some matrices, and some vectors beside others that are trained.
inline Config tiny_frozen() {
  Config config = tiny_gpt();
  config.model.freeze = {"wte.*", "blocks.0.*", "*.norm2.*", "blocks.1.mlp.up.weight"};
  return config;
}

inline void set_grid(Config& config, const Grid& grid, index_t replicas = 1) {
  config.mesh.replicas = replicas;
  config.mesh.cuboid_auto = false;
  config.mesh.cuboid = {grid.p, grid.q, grid.r};
  config.mesh.tokens = grid.tokens;
  config.mesh.outputs = grid.outputs;
  config.mesh.contractions = grid.contractions;
}

}  // namespace t3d::test
