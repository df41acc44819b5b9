// Decoders: tokens to text, token by token, so that a text can be shown while it is made. Decoding
// all at once is the same steps.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/parts/json_part.hpp"

namespace t3d::tok {

/// One step of decoding, with its state; gives what it makes to the next step. Tokens may come in
/// portions, since a step may make one long token of many.
class DecodeStep {
 public:
  virtual ~DecodeStep() = default;
  /// `begins`: a token's first portion; `ends`: its last one.
  virtual void put(std::string_view text, bool begins, bool ends) = 0;
  /// There are no more tokens.
  virtual void finish() {}
  void connect(DecodeStep& next) { next_ = &next; }

 protected:
  void give(std::string_view text, bool begins, bool ends) { next_->put(text, begins, ends); }
  void give(std::string_view token) { next_->put(token, true, true); }

 private:
  DecodeStep* next_ = nullptr;
};

/// A step that needs whole tokens.
class WholeTokens : public DecodeStep {
 public:
  void put(std::string_view text, bool begins, bool ends) final;

 protected:
  virtual void token(std::string text) = 0;

 private:
  std::string held_;
};

/// The steps of a tokenizer, from which each text gets its own.
class Decoder {
 public:
  Decoder();  // none in the file: tokens with spaces between them
  /// By "type". Error(io) naming the part.
  explicit Decoder(const JsonPart& part) { add(part); }

  class Run {
   public:
    explicit Run(const Decoder& decoder);
    /// The text that is complete now.
    [[nodiscard]] std::string feed(std::string_view token);
    [[nodiscard]] std::string finish();

   private:
    std::vector<std::unique_ptr<DecodeStep>> steps_;  // the last one keeps the text
    std::string text_;
  };

 private:
  using MakeStep = std::function<std::unique_ptr<DecodeStep>()>;
  void add(const JsonPart& part);
  std::vector<MakeStep> steps_;
};

/// The step of a part that is no sequence.
[[nodiscard]] std::function<std::unique_ptr<DecodeStep>()> make_decode_step(const JsonPart& part);

}  // namespace t3d::tok
