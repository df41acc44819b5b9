#include "data/batch_source.hpp"

#include <algorithm>

namespace t3d {
namespace {

constexpr std::int32_t kNoTarget = -1;

}  // namespace

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
    if (ignored_ >= 0) std::replace(first, first + context, ignored_, kNoTarget);
    if (!tokens_->partial_loss()) continue;
    read_counts(position + n);
    for (index_t at = 0; at < context; ++at)
      if (counts_[static_cast<std::size_t>(at)] == 0) first[at] = kNoTarget;
  }
}

void BatchSource::read_counts(index_t position) {
  counts_.resize(static_cast<std::size_t>(ledger_.context()));
  tokens_->read_counts(ledger_.first_token(position) + 1, ledger_.context(), counts_.data());
}

index_t BatchSource::targets(index_t position, index_t count) {
  const index_t context = ledger_.context();
  if (!ignores()) return count * context;
  index_t counted = 0;
  for (index_t n = 0; n < count; ++n) {
    read_counts(position + n);
    if (ignored_ >= 0) {
      tokens_->read(ledger_.first_token(position + n), context + 1, sample_.data());
      for (std::size_t at = 0; at < counts_.size(); ++at)
        if (sample_[at + 1] == ignored_) counts_[at] = 0;
    }
    counted += std::count(counts_.begin(), counts_.end(), 1);
  }
  return counted;
}

}  // namespace t3d
