// WordPiece: the longest token that begins the word, then the longest that begins the rest
// (Schuster and Nakajima 2012; BERT). And WordLevel: whole words only.
#include "tokenizer/parts/model.hpp"
#include "tokenizer/parts/utf8.hpp"

namespace t3d::tok {
namespace {

/// The vocabulary and the token for what is not in it.
class WordModel : public Model {
 public:
  explicit WordModel(const JsonPart& part)
      : vocabulary_(part.at("vocab")), unknown_token_(part.text("unk_token")) {}
  [[nodiscard]] const Vocabulary& vocabulary() const override { return vocabulary_; }
  [[nodiscard]] std::int32_t unknown() const override { return vocabulary_.id(unknown_token_); }

 protected:
  void add_unknown(std::string_view word, std::vector<std::int32_t>& ids) const {
    if (unknown() < 0)
      throw_error(ExitCode::config,
                  "{} is not in the tokenizer's vocabulary, and neither is unk_token {}",
                  in_quotes(word), in_quotes(unknown_token_));
    ids.push_back(unknown());
  }

 private:
  Vocabulary vocabulary_;
  std::string unknown_token_;
};

class WordPiece final : public WordModel {
 public:
  explicit WordPiece(const JsonPart& part) : WordModel(part) {
    part.only(
        {"type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"});
    prefix_ = part.text("continuing_subword_prefix");
    longest_ = part.at("max_input_chars_per_word").count();
    for (const auto& [token, id] : vocabulary().ids())
      longest_token_ = std::max(longest_token_, token.size());
  }
  void encode(std::string_view word, std::vector<std::int32_t>& ids) const override {
    const std::size_t before = ids.size();
    for (std::size_t begin = 0; begin < word.size();) {
      const auto [id, end] = longest_from(word, begin);
      if (id < 0 || !short_enough(word)) {
        ids.resize(before);
        return add_unknown(word, ids);
      }
      ids.push_back(id);
      begin = end;
    }
  }

 private:
  [[nodiscard]] bool short_enough(std::string_view word) const {
    std::int64_t letters = 0;
    for (std::size_t at = 0; at < word.size() && letters <= longest_; ++letters)
      next_char(word, at);
    return letters <= longest_;
  }
  [[nodiscard]] std::pair<std::int32_t, std::size_t> longest_from(std::string_view word,
                                                                  std::size_t begin) const {
    std::string token = begin > 0 ? prefix_ : "";
    const std::size_t prefix = token.size();
    std::size_t end = std::min(word.size(), begin + longest_token_);
    while (end < word.size() && end > begin &&
           (static_cast<std::uint8_t>(word[end]) & 0xC0U) == 0x80U)
      --end;
    while (end > begin) {
      token.resize(prefix);
      token += word.substr(begin, end - begin);
      if (const std::int32_t id = vocabulary().id(token); id >= 0) return {id, end};
      end -= bytes_before(word, end);
    }
    return {-1, begin};
  }

  std::string prefix_;
  std::int64_t longest_ = 0;       // characters of a word that is looked into
  std::size_t longest_token_ = 0;  // bytes
};

class WordLevel final : public WordModel {
 public:
  explicit WordLevel(const JsonPart& part) : WordModel(part) {
    part.only({"type", "unk_token", "vocab"});
  }
  void encode(std::string_view word, std::vector<std::int32_t>& ids) const override {
    const std::int32_t id = vocabulary().id(word);
    if (id >= 0)
      ids.push_back(id);
    else
      add_unknown(word, ids);
  }
};

}  // namespace

std::unique_ptr<Model> make_wordpiece(const JsonPart& part) {
  return std::make_unique<WordPiece>(part);
}
std::unique_ptr<Model> make_wordlevel(const JsonPart& part) {
  return std::make_unique<WordLevel>(part);
}

}  // namespace t3d::tok
