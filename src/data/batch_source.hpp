// BatchSource: samples of a corpus, or of a mixture of them, as (ids, targets) by global position;
// targets are the ids one token later.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/mixture.hpp"
#include "data/sample_ledger.hpp"
#include "data/token_source.hpp"

namespace t3d {

/// A source of a mixture.
struct MixturePart {
  std::shared_ptr<TokenSource> tokens;
  double weight = 1;
  std::string name;  // its samples are shuffled by it: another source beside it changes nothing
};

class BatchSource {
 public:
  /// Error(config) when the corpus has fewer than context + 1 tokens.
  /// Targets that are `ignored` (padding) do not count (below 0 = there are none), nor do those
  /// that `tokens` says do not.
  BatchSource(std::shared_ptr<TokenSource> tokens, index_t context, std::uint64_t seed,
              bool shuffle, std::int32_t ignored = -1);
  /// The same of several, by MixtureSchedule; every source has a ledger of its own. `vocab`: as for
  /// make_token_source(). Error(config) also when their tokenizers differ.
  BatchSource(std::vector<MixturePart> parts, index_t vocab, index_t context, std::uint64_t seed,
              bool shuffle, std::int32_t ignored = -1);

  /// Samples at positions [position, position + count): ids and targets are [count, context]; a
  /// target that does not count is -1.
  void read(index_t position, index_t count, std::int32_t* ids, std::int32_t* targets);

  /// Targets of these samples that count; any rank can ask for any samples.
  [[nodiscard]] index_t targets(index_t position, index_t count);
  /// Some targets may not count.
  [[nodiscard]] bool ignores() const { return ignored_ >= 0 || tokens_->partial_loss(); }

  /// So many positions from 0 on have every sample of every source at least once.
  [[nodiscard]] index_t samples() const;
  [[nodiscard]] index_t context() const { return parts_.front().ledger.context(); }
  /// All sources one after another.
  [[nodiscard]] TokenSource& tokens() const { return *tokens_; }

  struct Part {
    std::shared_ptr<TokenSource> tokens;
    SampleLedger ledger;
  };
  [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }
  /// Null where there is but one source.
  [[nodiscard]] const MixtureSchedule* mixture() const { return mixture_.get(); }

 private:
  struct Sample {
    TokenSource& tokens;
    index_t first = 0;
  };
  [[nodiscard]] Sample sample(index_t position) const;
  void read_counts(const Sample& sample);  // of the targets, into counts_

  std::shared_ptr<TokenSource> tokens_;
  std::vector<Part> parts_;
  std::shared_ptr<const MixtureSchedule> mixture_;
  std::int32_t ignored_;
  std::vector<std::int32_t> sample_;  // [context + 1]
  std::vector<std::uint8_t> counts_;  // [context]
};

}  // namespace t3d
