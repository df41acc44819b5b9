#include "train/step/state_parts.hpp"

namespace t3d {
namespace {

TensorPart part_of(const ParamBucket& bucket, const ParamEntry& entry, TensorView shard) {
  TensorPart part;
  part.dtype = shard.dtype;
  part.vector = entry.vector;
  part.rows = entry.vector ? 1 : entry.rows;
  part.cols = entry.vector ? entry.rows : entry.cols;
  part.data = shard.data;
  for (const BlockBox& piece : bucket.shard_boxes(entry)) {
    const Box& box = piece.box;
    // Buckets keep vectors as columns; files keep them as rows.
    part.boxes.push_back(entry.vector
                             ? TensorBox{0, box.row0, 1, box.rows, piece.offset}
                             : TensorBox{box.row0, box.col0, box.rows, box.cols, piece.offset});
  }
  return part;
}

}  // namespace

void append_parts(const std::vector<ParamBucket*>& buckets, const std::vector<TensorView>& shards,
                  const std::string& prefix, std::vector<TensorPart>& parts) {
  for (std::size_t at = 0; at < buckets.size(); ++at) {
    if (shards[at].data == nullptr) continue;  // no state of this kind
    for (const ParamEntry& entry : buckets[at]->entries()) {
      parts.push_back(part_of(*buckets[at], entry, shards[at]));
      parts.back().name = prefix + entry.name;
    }
  }
}

std::vector<TensorPart> weight_parts(const std::vector<ParamBucket*>& buckets, HostImage& image) {
  std::vector<TensorView> shards;
  shards.reserve(buckets.size());
  for (ParamBucket* bucket : buckets) shards.push_back(bucket->master());
  std::vector<TensorPart> parts;
  append_parts(buckets, image.of(shards), "", parts);
  return parts;
}

}  // namespace t3d
