#include "tokenizer/parts/decoder.hpp"

#include <utility>

namespace t3d::tok {
namespace {

class Join final : public DecodeStep {
 public:
  void put(std::string_view text, bool begins, bool ends) override {
    if (begins && !std::exchange(first_, false)) give(" ");
    give(text, begins, ends);
  }

 private:
  bool first_ = true;
};

class Keep final : public DecodeStep {
 public:
  explicit Keep(std::string& out) : out_(out) {}
  void put(std::string_view text, bool, bool) override { out_ += text; }

 private:
  std::string& out_;
};

}  // namespace

void WholeTokens::put(std::string_view text, bool begins, bool ends) {
  if (begins) held_.clear();
  held_ += text;
  if (ends) token(std::exchange(held_, {}));
}

Decoder::Decoder() : steps_{[] { return std::make_unique<Join>(); }} {}

void Decoder::add(const JsonPart& part) {
  if (part.type() != "Sequence") {
    steps_.push_back(make_decode_step(part));
    return;
  }
  part.only({"type", "decoders"});
  for (const JsonPart& step : part.list("decoders")) add(step);
}

Decoder::Run::Run(const Decoder& decoder) {
  for (const auto& make : decoder.steps_) steps_.push_back(make());
  steps_.push_back(std::make_unique<Keep>(text_));
  for (std::size_t n = 0; n + 1 < steps_.size(); ++n) steps_[n]->connect(*steps_[n + 1]);
}

std::string Decoder::Run::feed(std::string_view token) {
  steps_.front()->put(token, true, true);
  return std::exchange(text_, {});
}

std::string Decoder::Run::finish() {
  for (const auto& step : steps_) step->finish();
  return std::exchange(text_, {});
}

}  // namespace t3d::tok
