#include "data/batch_source.hpp"

#include <algorithm>

namespace t3d {

BatchSource::BatchSource(std::shared_ptr<TokenSource> tokens, index_t context, std::uint64_t seed,
                         bool shuffle, std::int32_t ignored)
    : tokens_(std::move(tokens)),
      ledger_(tokens_->size(), context, seed, shuffle),
      ignored_(ignored) {
  sample_.resize(static_cast<std::size_t>(context + 1));
}

void BatchSource::read(index_t position, index_t count, std::int32_t* ids, std::int32_t* targets) {
  const index_t context = ledger_.context();
  for (index_t n = 0; n < count; ++n) {
    tokens_->read(ledger_.first_token(position + n), context + 1, sample_.data());
    std::copy(sample_.begin(), sample_.end() - 1, ids + n * context);
    std::int32_t* const first = targets + n * context;
    std::copy(sample_.begin() + 1, sample_.end(), first);
    if (ignores()) std::replace(first, first + context, ignored_, std::int32_t{-1});
  }
}

index_t BatchSource::targets(index_t position, index_t count) {
  const index_t context = ledger_.context();
  index_t left_out = 0;
  for (index_t n = 0; n < count && ignores(); ++n) {
    tokens_->read(ledger_.first_token(position + n), context + 1, sample_.data());
    left_out += std::count(sample_.begin() + 1, sample_.end(), ignored_);
  }
  return count * context - left_out;
}

}  // namespace t3d
