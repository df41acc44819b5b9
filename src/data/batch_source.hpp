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
  BatchSource(std::shared_ptr<TokenSource> tokens, index_t context, std::uint64_t seed,
              bool shuffle);

  /// Samples at positions [position, position + count): ids and targets are [count, context].
  void read(index_t position, index_t count, std::int32_t* ids, std::int32_t* targets);

  [[nodiscard]] const SampleLedger& ledger() const { return ledger_; }
  [[nodiscard]] TokenSource& tokens() const { return *tokens_; }

 private:
  std::shared_ptr<TokenSource> tokens_;
  SampleLedger ledger_;
  std::vector<std::int32_t> sample_;  // [context + 1]
};

}  // namespace t3d
