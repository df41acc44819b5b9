#include "data/tokenize/train_sentencepiece.hpp"

#include <sentencepiece_trainer.h>

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "core/error.hpp"
#include "data/corpus.hpp"
#include "data/file_list.hpp"

namespace t3d {
namespace {

constexpr index_t kPieceBytes = 1 << 20;
constexpr std::size_t kSentenceBytes = 4000;  // the trainer passes over longer ones

/// The corpus as lines; long lines in parts.
class Lines final : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(const Corpus& corpus) : corpus_(corpus) { Next(); }
  bool done() const override { return done_; }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }
  void Next() override {
    if (at_ == text_.size()) {
      text_ = corpus_.piece(offset_, corpus_.bytes(), kPieceBytes);
      offset_ += std::ssize(text_);
      at_ = 0;
    }
    done_ = text_.empty();
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string_view rest(text_.data() + at_, end - at_);
    line_ = rest.substr(
        0, rest.size() > kSentenceBytes ? clean_cut(rest.substr(0, kSentenceBytes)) : rest.size());
    at_ += line_.size();
    if (at_ < text_.size() && text_[at_] == '\n') ++at_;
  }

 private:
  const Corpus& corpus_;
  index_t offset_ = 0;
  std::string text_, line_;
  std::size_t at_ = 0;
  bool done_ = false;
};

/// From SentencePiece's message "... smaller than required_chars. 331 vs 659. ..."; 0 = it says
/// something else.
index_t needed_vocab(std::string_view message) {
  constexpr std::string_view kBefore = "smaller than required_chars. ", kBetween = " vs ";
  const std::size_t first = message.find(kBefore);
  const std::size_t second =
      first == std::string_view::npos ? first : message.find(kBetween, first);
  index_t needed = 0;
  if (second != std::string_view::npos)
    std::from_chars(message.data() + second + kBetween.size(), message.data() + message.size(),
                    needed);
  return needed;
}

bool has_characters(const Corpus& corpus) {
  constexpr std::string_view kNone("\0\n\r\t ", 5);
  for (index_t at = 0; at < corpus.bytes();) {
    const std::string piece = corpus.piece(at, corpus.bytes(), kPieceBytes);
    if (piece.find_first_not_of(kNone) != std::string::npos) return true;
    at += std::ssize(piece);
  }
  return false;
}

}  // namespace

std::string train_sentencepiece(const std::vector<std::string>& files, const std::string& kind,
                                index_t vocab) {
  if (kind != "bpe" && kind != "unigram")
    throw_error(ExitCode::config, "unknown tokenizer \"{}\"; one of bytes, bpe, unigram", kind);
  const Corpus corpus(list_files(files));
  // Without a character the trainer ends the process.
  if (!has_characters(corpus))
    throw_error(ExitCode::config, "the corpus for the tokenizer has no characters");
  // Identity and no stripping, so that decoding gives the text back; what is not in the vocabulary
  // (newlines too) goes as bytes. Of the marks only the end of a document, which no text becomes.
  const std::unordered_map<std::string, std::string> flags{{"model_type", kind},
                                                           {"vocab_size", std::to_string(vocab)},
                                                           {"hard_vocab_limit", "false"},
                                                           {"byte_fallback", "true"},
                                                           {"normalization_rule_name", "identity"},
                                                           {"remove_extra_whitespaces", "false"},
                                                           {"add_dummy_prefix", "false"},
                                                           {"allow_whitespace_only_pieces", "true"},
                                                           {"split_digits", "true"},
                                                           {"max_sentence_length", "16384"},
                                                           {"input_sentence_size", "2000000"},
                                                           {"unk_id", "0"},
                                                           {"bos_id", "-1"},
                                                           {"eos_id", "1"},
                                                           {"eos_piece", "<eos>"},
                                                           {"pad_id", "-1"},
                                                           {"num_threads", "4"},
                                                           {"minloglevel", "2"}};
  Lines lines(corpus);
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(flags, &lines, &model);
  if (!status.ok()) {
    const std::string why = status.ToString();
    if (const index_t needed = needed_vocab(why); needed > vocab)
      throw_error(ExitCode::config,
                  "cannot train a {} tokenizer of {} ids: the characters of this text alone need "
                  "--vocab {}",
                  kind, vocab, needed);
    throw_error(ExitCode::config, "cannot train a {} tokenizer of {} ids: {}", kind, vocab, why);
  }
  return model;
}

}  // namespace t3d
