#include "tensor3d/whole_tensors.hpp"

#include <fmt/format.h>

#include "tensor3d/parameters.hpp"

namespace t3d {

std::vector<WholeTensor> whole_tensors(const ModelConfig& model) {
  std::vector<WholeTensor> all;
  for (const BucketTable& bucket : whole_buckets(model))
    for (const ParamEntry& entry : bucket.entries)
      all.push_back(entry.vector
                        ? WholeTensor{entry.name, 1, entry.rows, true, false}
                        : WholeTensor{entry.name, entry.rows, entry.cols, false,
                                      entry.name == "wte.weight" || entry.name == "head.weight"});
  return all;
}

std::vector<AdaptedPart> adapted_parts(const ModelConfig& model) {
  std::vector<AdaptedPart> parts;
  if (!model.lora.on()) return parts;
  const index_t heads = model.query_columns(), kv = model.kv_heads * model.head_size();
  const bool gated = model.activation == Activation::swiglu;
  struct Linear {
    BlockLinear which;
    const char* name;
    std::vector<index_t> rows;  // by segment
    index_t in;
  };
  const std::vector<Linear> linears{
      {BlockLinear::qkv, ".attn.qkv", {heads, kv, kv}, model.hidden},
      {BlockLinear::proj, ".attn.proj", {model.hidden}, heads},
      {BlockLinear::up, gated ? ".mlp.gate_up" : ".mlp.up", {model.ffn, model.ffn}, model.hidden},
      {BlockLinear::down, ".mlp.down", {model.hidden}, model.ffn}};
  for (index_t layer = 0; layer < model.layers; ++layer)
    for (const Linear& linear : linears) {
      const std::string name = fmt::format("blocks.{}{}", layer, linear.name);
      const std::vector<std::string_view> targets = lora_targets(model, linear.which);
      index_t row0 = 0, b_row0 = 0, low0 = 0;
      for (std::size_t segment = 0; segment < targets.size(); ++segment) {
        const index_t rows = linear.rows[segment];
        if (model.lora.adapts(targets[segment])) {
          parts.push_back({name + ".weight", name + std::string(kAdapterA),
                           name + std::string(kAdapterB), std::string(targets[segment]), row0, rows,
                           b_row0, low0, model.lora.rank, linear.in, model.lora.factor()});
          b_row0 += rows;
          low0 += model.lora.rank;
        }
        row0 += rows;
      }
    }
  return parts;
}

}  // namespace t3d
