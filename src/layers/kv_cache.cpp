#include "layers/kv_cache.hpp"

#include "core/error.hpp"

namespace t3d {

index_t kept_columns(const ModelShape& shape, const MeshShape& mesh, const Coord& coord) {
  const LinearShape qkv = shape.qkv();
  index_t columns = qkv.out.columns_partition().size(coord.at(qkv.out_axis));
  if (qkv.out.panels)
    columns = qkv.out_panels(mesh, coord)[static_cast<std::size_t>(coord.at(qkv.in_axis))].count;
  return columns / qkv.out.columns_per_group() * shape.model.head_size();
}

index_t kept_bytes(const ModelShape& shape, const MeshShape& mesh, const Coord& coord,
                   DType activation, index_t sequences, index_t capacity) {
  return 2 * shape.model.layers * sequences * capacity * kept_columns(shape, mesh, coord) *
         size_of(activation);
}

KvCache::KvCache(const Context& context, const ModelShape& shape, index_t sequences,
                 index_t capacity)
    : capacity_(capacity) {
  const MeshShape& mesh = context.mesh.shape();
  const Coord& coord = context.mesh.coord();
  const index_t rows = sequences * capacity, columns = kept_columns(shape, mesh, coord);
  const index_t bytes = kept_bytes(shape, mesh, coord, context.activation, sequences, capacity);
  const index_t free = context.device.capacity().free;
  const bool countable = rows < index_t{1} << 31;  // places are 32-bit numbers
  if (!countable || (free > 0 && bytes > free))
    throw_error(ExitCode::unavailable,
                "keys and values of {} sequences of up to {} tokens take {} MiB on a rank that has "
                "{} MiB free: fewer sequences at a time (--batch) or fewer --tokens need less",
                sequences, capacity, bytes >> 20, free >> 20);
  for (index_t layer = 0; layer < shape.model.layers; ++layer)
    for (std::vector<Tensor>* kept : {&keys_, &values_})
      kept->push_back(context.make(context.activation, rows, columns, MemoryKind::activations));
}

KvCache::Layer KvCache::layer(index_t number) const {
  const auto at = static_cast<std::size_t>(number);
  return {keys_[at].view(), values_[at].view()};
}

}  // namespace t3d
