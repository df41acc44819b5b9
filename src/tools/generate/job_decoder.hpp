// The model of a generation on all ranks of a job. Rank 0 says what is to be computed, the others
// do the same until it says that all is done: only rank 0 knows texts, and only it chooses tokens,
// so that machines whose exponentials differ in the last bit cannot go different ways.
#pragma once
#include <string>
#include <vector>

#include "layers/decoder.hpp"
#include "run/setup.hpp"

namespace t3d {

class JobDecoder {
 public:
  /// Collective. `slots` texts at a time of up to `capacity` tokens.
  JobDecoder(Communicator& world, LoadedModel& loaded, index_t slots, index_t capacity);

  // On rank 0; as in Decoder.
  [[nodiscard]] std::vector<float> read(const std::vector<Decoder::Prompt>& prompts);
  [[nodiscard]] std::vector<float> go_on(const std::vector<Decoder::Next>& tokens);
  void end();
  /// On the others: until rank 0 calls end().
  void follow();

  /// An error came from the model or its messages, not from rank 0's own work: the others are not
  /// waiting for word from rank 0.
  [[nodiscard]] bool interrupted() const { return busy_; }
  [[nodiscard]] index_t vocab() const;
  [[nodiscard]] index_t capacity() const { return decoder_->capacity(); }

 private:
  /// What rank 0 says: kind, then for each text slot, number of ids, ids.
  using Words = std::vector<std::int32_t>;
  [[nodiscard]] std::vector<float> run(Words words);
  [[nodiscard]] std::vector<float> compute(const Words& words);

  Communicator& world_;
  LoadedModel& loaded_;
  std::unique_ptr<Decoder> decoder_;
  bool busy_ = false;
};

}  // namespace t3d
