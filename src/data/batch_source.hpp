// BatchSource: samples of a corpus as (ids, targets) by global position; targets are the ids one
// token later.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "data/sample_ledger.hpp"
#include "data/token_source.hpp"

namespace t3d {

class BatchSource {
 public:
  /// Error(config) when the corpus has fewer than context + 1 tokens.
  /// Targets that are `ignored` (padding) do not count (below 0 = there are none), nor do those
  /// that `tokens` says do not.
  BatchSource(std::shared_ptr<TokenSource> tokens, index_t context, std::uint64_t seed,
              bool shuffle, std::int32_t ignored = -1);

  /// Samples at positions [position, position + count): ids and targets are [count, context]; a
  /// target that does not count is -1.
  void read(index_t position, index_t count, std::int32_t* ids, std::int32_t* targets);

  /// Targets of these samples that count; any rank can ask for any samples.
  [[nodiscard]] index_t targets(index_t position, index_t count);
  /// Some targets may not count.
  [[nodiscard]] bool ignores() const { return ignored_ >= 0 || tokens_->partial_loss(); }

  [[nodiscard]] const SampleLedger& ledger() const { return ledger_; }
  [[nodiscard]] TokenSource& tokens() const { return *tokens_; }

 private:
  void read_counts(index_t position);  // of the targets, into counts_
  std::shared_ptr<TokenSource> tokens_;
  SampleLedger ledger_;
  std::int32_t ignored_;
  std::vector<std::int32_t> sample_;  // [context + 1]
  std::vector<std::uint8_t> counts_;  // [context]
};

}  // namespace t3d
