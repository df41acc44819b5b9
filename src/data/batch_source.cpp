#include "data/batch_source.hpp"

#include <algorithm>

#include "core/random.hpp"

namespace t3d {
namespace {

constexpr std::int32_t kNoTarget = -1;

std::shared_ptr<TokenSource> joined(const std::vector<MixturePart>& parts, index_t vocab) {
  std::vector<std::shared_ptr<TokenSource>> all;
  for (const MixturePart& part : parts) all.push_back(part.tokens);
  return make_joined_source(std::move(all), vocab);
}

}  // namespace

BatchSource::BatchSource(std::shared_ptr<TokenSource> tokens, index_t context, std::uint64_t seed,
                         bool shuffle, std::int32_t ignored)
    : tokens_(std::move(tokens)), ignored_(ignored) {
  parts_.push_back({tokens_, {tokens_->size(), context, seed, shuffle}});
  sample_.resize(static_cast<std::size_t>(context + 1));
}

BatchSource::BatchSource(std::vector<MixturePart> parts, index_t vocab, index_t context,
                         std::uint64_t seed, bool shuffle, std::int32_t ignored)
    : tokens_(joined(parts, vocab)), ignored_(ignored) {
  std::vector<double> weights;
  for (MixturePart& part : parts) {
    const std::uint64_t own = seed ^ stream_of("source " + part.name);
    parts_.push_back({part.tokens, {part.tokens->size(), context, own, shuffle}});
    weights.push_back(part.weight);
  }
  if (parts_.size() > 1) mixture_ = std::make_shared<MixtureSchedule>(weights);
  sample_.resize(static_cast<std::size_t>(context + 1));
}

BatchSource::Sample BatchSource::sample(index_t position) const {
  const MixtureSchedule::Place place =
      mixture_ ? mixture_->at(position) : MixtureSchedule::Place{0, position};
  const Part& part = parts_[place.source];
  return {*part.tokens, part.ledger.first_token(place.position)};
}

index_t BatchSource::samples() const {
  index_t most = 0;
  for (std::size_t s = 0; s < parts_.size(); ++s) {
    const index_t own = parts_[s].ledger.samples();
    if (!mixture_) return own;
    const index_t share = mixture_->shares()[s];
    most = std::max(most, (own + share - 1) / share * mixture_->period());
  }
  return most;
}

void BatchSource::read(index_t position, index_t count, std::int32_t* ids, std::int32_t* targets) {
  const index_t context = this->context();
  for (index_t n = 0; n < count; ++n) {
    const Sample from = sample(position + n);
    from.tokens.read(from.first, context + 1, sample_.data());
    std::copy(sample_.begin(), sample_.end() - 1, ids + n * context);
    std::int32_t* const first = targets + n * context;
    std::copy(sample_.begin() + 1, sample_.end(), first);
    if (ignored_ >= 0) std::replace(first, first + context, ignored_, kNoTarget);
    if (!from.tokens.partial_loss()) continue;
    read_counts(from);
    for (index_t at = 0; at < context; ++at)
      if (counts_[static_cast<std::size_t>(at)] == 0) first[at] = kNoTarget;
  }
}

void BatchSource::read_counts(const Sample& sample) {
  counts_.resize(static_cast<std::size_t>(context()));
  sample.tokens.read_counts(sample.first + 1, context(), counts_.data());
}

index_t BatchSource::targets(index_t position, index_t count) {
  const index_t context = this->context();
  if (!ignores()) return count * context;
  index_t counted = 0;
  for (index_t n = 0; n < count; ++n) {
    const Sample from = sample(position + n);
    read_counts(from);
    if (ignored_ >= 0) {
      from.tokens.read(from.first, context + 1, sample_.data());
      for (std::size_t at = 0; at < counts_.size(); ++at)
        if (sample_[at + 1] == ignored_) counts_[at] = 0;
    }
    counted += std::count(counts_.begin(), counts_.end(), 1);
  }
  return counted;
}

}  // namespace t3d
