#include "tokenizer/parts/word_cache.hpp"

#include <algorithm>
#include <cstring>

namespace t3d::tok {

std::uint64_t WordCache::hash_of(std::string_view word) {
  std::uint64_t hash = word.size() * 0x9E3779B97F4A7C15ULL;
  const auto mix = [&](std::uint64_t block) {
    hash = (hash ^ block) * 0xD6E8FEB86659FD93ULL;
    hash ^= hash >> 32U;
  };
  std::size_t at = 0;
  for (; at + 8 <= word.size(); at += 8) {
    std::uint64_t block = 0;
    std::memcpy(&block, word.data() + at, 8);
    mix(block);
  }
  std::uint64_t rest = 0;
  for (; at < word.size(); ++at) rest = rest << 8U | static_cast<std::uint8_t>(word[at]);
  mix(rest);
  return std::max<std::uint64_t>(hash, 1);
}

bool WordCache::find(std::string_view word, std::uint64_t hash,
                     std::vector<std::int32_t>& ids) const {
  if (slots_.empty()) return false;
  for (std::size_t at = hash & (kSlots - 1);; at = (at + 1) & (kSlots - 1)) {
    const Slot& slot = slots_[at];
    if (slot.hash == 0) return false;
    if (slot.hash != hash || word != std::string_view(texts_).substr(slot.text, slot.bytes))
      continue;
    ids.insert(ids.end(), ids_.begin() + slot.ids, ids_.begin() + slot.ids + slot.count);
    return true;
  }
}

void WordCache::add(std::string_view word, std::uint64_t hash, std::span<const std::int32_t> ids) {
  if (slots_.empty() || 2 * used_ > kSlots) {
    slots_.assign(kSlots, {});
    texts_.clear();
    ids_.clear();
    used_ = 0;
  }
  std::size_t at = hash & (kSlots - 1);
  while (slots_[at].hash != 0) at = (at + 1) & (kSlots - 1);
  slots_[at] = {hash, static_cast<std::uint32_t>(texts_.size()),
                static_cast<std::uint32_t>(ids_.size()), static_cast<std::uint32_t>(word.size()),
                static_cast<std::uint32_t>(ids.size())};
  texts_ += word;
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  ++used_;
}

CachePool::Lease CachePool::borrow() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return {*this, std::make_unique<WordCache>()};
  auto cache = std::move(free_.back());
  free_.pop_back();
  return {*this, std::move(cache)};
}

CachePool::Lease::~Lease() {
  const std::lock_guard lock(pool_->mutex_);
  pool_->free_.push_back(std::move(cache_));
}

}  // namespace t3d::tok
