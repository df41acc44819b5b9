#include "tensor3d/whole_tensors.hpp"

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

}  // namespace t3d
