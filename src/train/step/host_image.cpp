#include "train/step/host_image.hpp"

#include <algorithm>

namespace t3d {

std::vector<TensorView> HostImage::of(const std::vector<TensorView>& shards) {
  std::vector<TensorView> result;
  result.reserve(shards.size());
  for (const TensorView& shard : shards) result.push_back(host_of(shard));
  return result;
}

TensorView HostImage::host_of(TensorView shard) {
  if (context_.device.host_addressable() || shard.empty()) return shard;
  const auto known = std::find_if(copies_.begin(), copies_.end(), [&](const Copy& copy) {
    return copy.device.data == shard.data && copy.device.bytes() == shard.bytes();
  });
  if (known == copies_.end())
    copies_.push_back({shard, host_array<std::byte>(context_.device, shard.bytes())});
  shard.data = (known == copies_.end() ? copies_.back() : *known).host.get();
  return shard;
}

void HostImage::download() {
  for (Copy& copy : copies_)
    context_.device.copy(copy.host.get(), copy.device.data, copy.device.bytes(), context_.queue);
  context_.queue.synchronize();
}

void HostImage::upload() {
  for (Copy& copy : copies_)
    context_.device.copy(copy.device.data, copy.host.get(), copy.device.bytes(), context_.queue);
  context_.queue.synchronize();
}

}  // namespace t3d
