// Ids of words seen before. Texts repeat their words; most of encoding is looking them up here.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace t3d::tok {

class WordCache {
 public:
  static constexpr std::size_t kLongest = 256;  // bytes; longer words hardly come twice

  /// Appends the ids of `word`; false when it is not known. `hash` = hash_of(word).
  [[nodiscard]] bool find(std::string_view word, std::uint64_t hash,
                          std::vector<std::int32_t>& ids) const;
  /// For a word that is not in it. Forgets everything when it is full.
  void add(std::string_view word, std::uint64_t hash, std::span<const std::int32_t> ids);
  [[nodiscard]] static std::uint64_t hash_of(std::string_view word);

 private:
  static constexpr std::size_t kSlots = 1 << 17;
  struct Slot {
    std::uint64_t hash = 0;  // 0 = empty
    std::uint32_t text = 0, ids = 0;
    std::uint32_t bytes = 0, count = 0;
  };
  std::vector<Slot> slots_;
  std::string texts_;
  std::vector<std::int32_t> ids_;
  std::size_t used_ = 0;
};

/// Caches, each of which one thread has at a time: any number may encode with one tokenizer.
class CachePool {
 public:
  class Lease {
   public:
    Lease(CachePool& pool, std::unique_ptr<WordCache> cache)
        : pool_(&pool), cache_(std::move(cache)) {}
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    WordCache& operator*() const { return *cache_; }

   private:
    CachePool* pool_;
    std::unique_ptr<WordCache> cache_;
  };
  [[nodiscard]] Lease borrow();

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<WordCache>> free_;
};

}  // namespace t3d::tok
