#include "data/sample_ledger.hpp"

#include "core/error.hpp"
#include "core/random.hpp"

namespace t3d {

SampleLedger::SampleLedger(index_t tokens, index_t context, std::uint64_t seed, bool shuffle)
    : context_(context), seed_(seed), shuffle_(shuffle) {
  if (context < 1) throw_error(ExitCode::config, "a context of {} tokens", context);
  samples_ = tokens > 0 ? (tokens - 1) / context : 0;
  if (samples_ < 1)
    throw_error(ExitCode::config,
                "the corpus has {} tokens, but one sample needs {} (context {} and one more)",
                tokens, context + 1, context);
}

index_t SampleLedger::sample_at(index_t position) const {
  T3D_CHECK(position >= 0, "sample position {}", position);
  const index_t within = position % samples_;
  if (!shuffle_) return within;
  // Every epoch is a permutation of its own.
  const RandomKey key{seed_, stream_of("samples") + static_cast<std::uint64_t>(epoch_of(position))};
  return permute(key, within, samples_);
}

}  // namespace t3d
