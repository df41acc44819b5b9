// What a training reads: its corpus or mixture, and its validation sets.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "data/batch_source.hpp"
#include "data/token_card.hpp"

namespace t3d {

/// A validation set; data.valid has no name.
struct ValidationText {
  std::string name;
  std::shared_ptr<BatchSource> source;
  [[nodiscard]] std::string key() const {
    return name.empty() ? "data.valid" : "[[data.validation]] " + name;
  }
};

struct Texts {
  std::shared_ptr<BatchSource> train;
  std::vector<ValidationText> validation;  // data.valid first, where it is
  [[nodiscard]] std::vector<const TokenSource*> validation_sets() const;
};

/// Collective. Opens all of it, and compares it between the ranks. Fills model.vocab where it is 0.
/// Errors: share_token_cards(), open_corpus(), agree_on_corpus().
[[nodiscard]] Texts open_texts(Communicator& world, Config& config);

}  // namespace t3d
