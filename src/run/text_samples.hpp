// Short texts that the model in training writes, for people to look at: the first tokens of the
// validation text's first samples, continued. The first replica computes them on the cuboid that it
// trains on; the other ranks hear each token. Training hears nothing of it: no random number of
// its own is drawn, and no state is touched.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "layers/decoder.hpp"
#include "run/texts.hpp"
#include "run/tokenizer_check.hpp"
#include "train/step/trainer.hpp"

namespace t3d {

/// What the samples send has no formula: it counts on this axis.
inline constexpr const char* kSamplesAxis = "samples";

class TextSamples {
 public:
  /// Collective. None where log.samples = 0, or where nobody knows the tokenizer: `warn` hears so,
  /// on rank 0. The others outlive it.
  TextSamples(Communicator& world, const Config& config, const std::vector<ValidationText>& texts,
              const RunTokenizer& tokenizer, Trainer& trainer,
              const std::function<void(const std::string&)>& warn);

  /// Collective. A line for each text, on rank 0. Who asks to stop breaks it off: no line then.
  [[nodiscard]] std::vector<std::string> write(Interruption& interruption);

 private:
  using Ids = std::vector<std::int32_t>;
  void read_prompts();
  /// The texts [first, first + slots) get their tokens. Returns false where it was broken off.
  [[nodiscard]] bool continue_texts(index_t first, index_t slots, Interruption& interruption);
  [[nodiscard]] std::vector<float> compute(Decoder& decoder, index_t first, index_t slots) const;
  [[nodiscard]] bool computes() const;
  [[nodiscard]] bool chooses() const;
  [[nodiscard]] index_t slots_at_a_time() const;
  [[nodiscard]] std::string line(std::size_t number) const;

  Communicator& world_;
  const Config& config_;
  Trainer& trainer_;
  BatchSource* source_ = nullptr;
  std::unique_ptr<Tokenizer> tokenizer_;  // on rank 0
  std::vector<std::int32_t> ends_;        // of texts; on rank 0
  index_t count_ = 0;                     // of texts
  index_t known_ = 0;                     // ids that mean something
  index_t prompt_ = 0, tokens_ = 0;       // of each text
  std::vector<Ids> prompts_, added_;
};

}  // namespace t3d
