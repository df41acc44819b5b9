// Texts for the training of a tokenizer, as plain files: the inputs themselves, or where they are
// JSONL or compressed, a sample of their documents in a file for the time being.
#pragma once
#include <string>
#include <vector>

#include "data/text/text_input.hpp"
#include "data/tokenize.hpp"

namespace t3d {

class TrainingTexts {
 public:
  /// A sample has up to 256 MiB, from the beginnings of all inputs in proportion to their sizes.
  TrainingTexts(const std::vector<TextInput>& inputs, const std::string& folder,
                const TokenizeOptions& options);
  ~TrainingTexts();
  TrainingTexts(const TrainingTexts&) = delete;
  TrainingTexts& operator=(const TrainingTexts&) = delete;
  [[nodiscard]] const std::vector<std::string>& files() const { return files_; }

 private:
  std::string sample_;  // its path, or empty
  std::vector<std::string> files_;
};

}  // namespace t3d
