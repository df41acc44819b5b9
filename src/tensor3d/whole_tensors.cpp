#include "tensor3d/whole_tensors.hpp"

#include "tensor3d/parameters.hpp"

namespace t3d {

std::vector<WholeTensor> whole_tensors(const ModelConfig& model) {
  ReplicaPlan whole;
  whole.hidden = Partition::even("hidden", model.hidden, 1);
  whole.groups = Partition::even("groups", model.kv_heads, 1);
  whole.ffn = Partition::even("ffn", model.ffn, 1);
  whole.vocab = Partition::even("vocab", model.vocab, 1);
  whole.storage = Partition::even("storage", 1, 1);
  const ModelShape shape(model, whole);
  std::vector<WholeTensor> all;
  for (const BucketTable& bucket : parameter_buckets(shape, MeshShape(1, 1, 1, 1), {}))
    for (const ParamEntry& entry : bucket.entries)
      all.push_back(entry.vector
                        ? WholeTensor{entry.name, 1, entry.rows, true, false}
                        : WholeTensor{entry.name, entry.rows, entry.cols, false,
                                      entry.name == "wte.weight" || entry.name == "head.weight"});
  return all;
}

}  // namespace t3d
