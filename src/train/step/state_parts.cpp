#include "train/step/state_parts.hpp"

#include <cstddef>

#include "core/finite.hpp"

namespace t3d {
namespace {

TensorPart part_of(const ParamBucket& bucket, const ParamEntry& entry, TensorView shard) {
  TensorPart part;
  part.dtype = shard.dtype;
  part.vector = entry.vector;
  part.rows = entry.vector ? 1 : entry.rows;
  part.cols = entry.vector ? entry.rows : entry.cols;
  part.data = shard.data;
  for (const PlacedBox& piece : bucket.shard_boxes(entry)) {
    const Box& box = piece.box;
    // Buckets keep vectors as columns; files keep them as rows.
    part.boxes.push_back(entry.vector ? PlacedBox{{0, box.row0, 1, box.rows}, piece.offset}
                                      : piece);
  }
  return part;
}

/// The pieces of `shards`, by bucket, under the name prefix + parameter name.
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

}  // namespace

std::vector<TensorPart> weight_parts(Transformer& model, HostImage& image) {
  std::vector<TensorView> shards;
  for (ParamBucket* bucket : model.buckets()) shards.push_back(bucket->master());
  std::vector<TensorPart> parts;
  append_parts(model.buckets(), image.of(shards), "", parts);
  return parts;
}

std::string first_not_finite(const std::vector<TensorPart>& parts) {
  for (const TensorPart& part : parts)
    for (const PlacedBox& placed : part.boxes) {
      const auto* data = static_cast<const std::byte*>(part.data);
      const bool finite =
          all_finite(part.dtype, data + placed.offset * size_of(part.dtype), placed.box.count());
      if (!finite) return part.name;
    }
  return {};
}

std::vector<TensorPart> state_parts(Formation& formation, HostImage& image) {
  std::vector<TensorPart> parts = weight_parts(formation.model(), image);
  for (const StateSlot& slot : formation.update().state())
    append_parts(formation.model().buckets(), image.of(slot.buffers->views()), slot.name + "/",
                 parts);
  const TensorView noise = formation.update().aggregation().noise();
  if (noise.data == nullptr) return parts;
  parts.push_back({kNoiseState,
                   noise.dtype,
                   noise.rows,
                   noise.cols,
                   false,
                   image.of({noise}).front().data,
                   {{{0, 0, noise.rows, noise.cols}, 0}}});
  return parts;
}

}  // namespace t3d
