// A session on rank 0: prompts go into the model's slots as they become free, and every step adds a
// token to each text that has not ended.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "run/sampling.hpp"
#include "tokenizer/tokenizer.hpp"
#include "tools/generate/job_decoder.hpp"
#include "tools/generate/stop_strings.hpp"
#include "tools/generate/writer.hpp"

namespace t3d {

/// A prompt and its ids: at least one, at most the model's context.
struct EncodedPrompt {
  std::string text;
  std::vector<std::int32_t> ids;
};

struct SessionOptions {
  SamplingOptions sampling;
  index_t tokens = 0;  // to add at most
  std::vector<std::string> stops;
  std::vector<std::int32_t> ends;  // each ends a text
};

/// Tokens and seconds of reading prompts and of writing texts.
struct SessionTimes {
  index_t read_tokens = 0, written_tokens = 0;
  double read_seconds = 0, write_seconds = 0;
  index_t timed_tokens = 0;  // chosen in write_seconds: reading a prompt gives a token, too
};

class Session {
 public:
  /// `model_name`: for messages.
  Session(JobDecoder& model, const Tokenizer& tokenizer, const SessionOptions& options,
          TextWriter& writer, std::string model_name);
  /// Continues all prompts, `slots` at a time. Error(diverged) where logits are no numbers.
  [[nodiscard]] SessionTimes run(const std::vector<EncodedPrompt>& prompts, index_t slots);

 private:
  struct Text {
    index_t number;                 // of the prompt
    std::vector<std::int32_t> ids;  // prompt and what was added
    index_t added = 0;
    std::string text;  // shown so far
    std::unique_ptr<TextStream> characters;
    StopStrings stops;
  };
  [[nodiscard]] Text text_for(const EncodedPrompt& prompt, index_t number) const;
  void fill_slots(const std::vector<EncodedPrompt>& prompts);
  void write_step(const std::vector<EncodedPrompt>& prompts);
  void add_token(index_t slot, const float* logits, const EncodedPrompt& prompt);
  [[nodiscard]] std::string special_text_of(std::int32_t id) const;
  void show(Text& text, std::string_view piece);
  void finish(index_t slot, std::string_view why, const EncodedPrompt& prompt);

  JobDecoder& model_;
  const Tokenizer& tokenizer_;
  SessionOptions options_;
  TextWriter& writer_;
  std::string model_name_;
  std::vector<std::optional<Text>> slots_;
  std::size_t next_ = 0;  // prompt
  SessionTimes times_;
};

}  // namespace t3d
