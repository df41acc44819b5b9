// Decoder: sequences that go on token by token, with what was computed kept (KvCache). It has slots
// for sequences: cut over i in the plan's proportions and, where k cuts attention by sequences,
// evenly over k. Such a part of the slots is a lane: a sequence's keys and values lie on the ranks
// of its lane.
//
// A pass gives each lane of a slab the same number of rows, with padding where it has less to do:
// prompts are read one for each lane at a time, in as many rows as the longest of them has tokens.
// With one lane (one rank, say) there is no padding, and nothing about a sequence depends on
// others.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "layers/kv_cache.hpp"
#include "layers/transformer.hpp"

namespace t3d {

class Decoder {
 public:
  /// `slots` sequences at a time, of up to `capacity` tokens (at most the model's context). The
  /// model, whose weights do not change, and the context must outlive it.
  Decoder(const Context& context, Transformer& model, index_t slots, index_t capacity);

  /// The sequence in a slot from its beginning: 1 to `capacity` tokens.
  struct Prompt {
    index_t slot = 0;
    std::vector<std::int32_t> ids;
  };
  /// A sequence's next token.
  struct Next {
    index_t slot = 0;
    std::int32_t id = 0;
  };
  // Both are collective over the cuboid, with the same arguments on every rank; no slot twice.
  // Logits [number of sequences, V] after the last token of each, in host memory.
  [[nodiscard]] std::vector<float> read(std::span<const Prompt> prompts);
  [[nodiscard]] std::vector<float> go_on(std::span<const Next> tokens);

  [[nodiscard]] index_t capacity() const { return cache_.capacity(); }

 private:
  /// What one sequence brings into a pass: tokens at positions first, first + 1, ...
  struct Piece {
    index_t slot = 0, first = 0;
    std::span<const std::int32_t> ids;
  };
  struct Place {
    index_t slab = 0, lane = 0, row = 0;  // row: of the lane's cache, in sequences
  };
  [[nodiscard]] Place place_of(index_t slot) const;
  [[nodiscard]] std::vector<float> pass(std::span<const Piece> pieces, index_t length);
  void check(index_t slot, index_t tokens) const;

  const Context& context_;
  Transformer& model_;
  index_t lanes_;    // of a slab
  Partition slots_;  // over i
  KvCache cache_;
  std::vector<index_t> lengths_;  // tokens so far, by slot
};

}  // namespace t3d
