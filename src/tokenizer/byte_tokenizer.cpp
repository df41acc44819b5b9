#include <algorithm>

#include "core/error.hpp"
#include "tokenizer/parts/utf8.hpp"
#include "tokenizer/tokenizer.hpp"

namespace t3d {
namespace {

// Holds back the beginning of a character; bytes that are no text stay what they are.
class ByteTextStream final : public TextStream {
 public:
  std::string feed(std::int32_t id) override {
    if (id < 0 || id > 255)
      throw_error(ExitCode::config, "token {} is outside the vocabulary of 256", id);
    held_.push_back(static_cast<char>(id));
    std::size_t done = 0;
    while (done < held_.size()) {
      const tok::Utf8Step step = tok::utf8_step(held_, done);
      if (step.state == tok::Utf8::cut) break;
      done += step.bytes;
    }
    std::string text = held_.substr(0, done);
    held_.erase(0, done);
    return text;
  }
  std::string finish() override { return std::exchange(held_, {}); }

 private:
  std::string held_;
};

class ByteTokenizer final : public Tokenizer {
 public:
  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> ids(text.size());
    std::transform(text.begin(), text.end(), ids.begin(),
                   [](char letter) { return static_cast<std::uint8_t>(letter); });
    return ids;
  }
  std::unique_ptr<TextStream> stream(Specials) const override {
    return std::make_unique<ByteTextStream>();
  }
  index_t vocab() const override { return 256; }
  std::string kind() const override { return "bytes"; }
  std::string model() const override { return {}; }
};

}  // namespace

std::unique_ptr<Tokenizer> make_byte_tokenizer() { return std::make_unique<ByteTokenizer>(); }

}  // namespace t3d
