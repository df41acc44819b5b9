// Unigram: of all ways to cut a word into pieces, the one whose pieces' scores have the highest sum
// (Kudo 2018). A character that no piece covers costs 10 more than the worst piece, and several in
// a row are one unknown piece.
#include <algorithm>
#include <limits>

#include "tokenizer/parts/model.hpp"
#include "tokenizer/parts/trie.hpp"
#include "tokenizer/parts/utf8.hpp"

namespace t3d::tok {
namespace {

constexpr double kUnknownPenalty = 10.0;

class Unigram final : public Model {
 public:
  explicit Unigram(const JsonPart& part) : byte_fallback_(part.flag_or("byte_fallback", false)) {
    part.only({"type", "unk_id", "vocab", "byte_fallback"});
    double least = std::numeric_limits<double>::infinity();
    const JsonPart list = part.at("vocab");
    if (!list.node().is_array()) list.fail("a list is expected");
    for (std::size_t n = 0; n < list.node().size(); ++n) {
      const JsonPart entry(list.node()[n], fmt::format("{}[{}]", list.path(), n));
      const auto both = entry.list();
      if (both.size() != 2) entry.fail("a token and its score are expected");
      const std::string token = both[0].text();
      if (std::ssize(scores_) > kMaxId) entry.fail("ids end at {}", kMaxId);
      const auto id = static_cast<std::int32_t>(scores_.size());
      if (!vocabulary_.add(token, id))
        entry.fail("{} has id {}, too", in_quotes(token), vocabulary_.id(token));
      scores_.push_back(both[1].number());
      least = std::min(least, scores_.back());
      if (!token.empty()) trie_.add(token, id);
    }
    if (part.has("unk_id")) {
      unknown_ = part.at("unk_id").id();
      if (unknown_ >= std::ssize(scores_))
        part.at("unk_id").fail("{} is not in the vocabulary of {}", unknown_, scores_.size());
    }
    unknown_score_ = least - kUnknownPenalty;
  }

  void encode(std::string_view word, std::vector<std::int32_t>& ids) const override {
    const std::vector<Node> best = best_paths(word);
    std::vector<std::string_view> pieces;  // last first
    std::size_t unknown_end = 0;           // of the run that the walk is in; 0 = in none
    for (std::size_t end = word.size(); end > 0; end = best[end].begin) {
      const Node& node = best[end];
      if (node.id == unknown_) {
        if (unknown_end == 0) unknown_end = end;
      } else {
        if (unknown_end != 0) pieces.push_back(word.substr(end, unknown_end - end));
        unknown_end = 0;
        pieces.push_back(word.substr(node.begin, end - node.begin));
      }
    }
    if (unknown_end != 0) pieces.push_back(word.substr(0, unknown_end));
    for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) add(*piece, ids);
  }
  [[nodiscard]] const Vocabulary& vocabulary() const override { return vocabulary_; }
  [[nodiscard]] std::int32_t unknown() const override { return unknown_; }

 private:
  struct Node {  // the best way that ends here
    double score = 0;
    std::size_t begin = kNowhere;  // of its last piece
    std::int32_t id = -1;
  };
  static constexpr std::size_t kNowhere = std::string_view::npos;

  [[nodiscard]] std::vector<Node> best_paths(std::string_view word) const {
    std::vector<Node> best(word.size() + 1);
    const auto offer = [&](std::size_t begin, std::size_t end, double score, std::int32_t id) {
      Node& node = best[end];
      const double sum = score + best[begin].score;
      if (node.begin == kNowhere || sum > node.score) node = {sum, begin, id};
    };
    for (std::size_t at = 0; at < word.size();) {
      std::size_t next = at;
      next_char(word, next);
      bool covered = false;
      trie_.each_prefix(word, at, [&](std::size_t bytes, std::int32_t id) {
        offer(at, at + bytes, scores_[static_cast<std::size_t>(id)], id);
        covered |= at + bytes == next;
      });
      if (!covered) {
        if (unknown_ < 0 && best[next].begin == kNowhere) fail_unknown(word.substr(at, next - at));
        if (unknown_ >= 0) offer(at, next, unknown_score_, unknown_);
      }
      at = next;
    }
    return best;
  }

  [[noreturn]] static void fail_unknown(std::string_view text) {
    throw_error(ExitCode::config, "{} is not in the tokenizer's vocabulary, which has no unk_id",
                in_quotes(text));
  }

  void add(std::string_view piece, std::vector<std::int32_t>& ids) const {
    if (const std::int32_t id = vocabulary_.id(piece); id >= 0) return ids.push_back(id);
    if (byte_fallback_) {
      const std::size_t before = ids.size();
      for (const char byte : piece)
        ids.push_back(vocabulary_.id(byte_token(static_cast<std::uint8_t>(byte))));
      if (std::find(ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end(), -1) == ids.end())
        return;
      ids.resize(before);
    }
    if (unknown_ < 0) fail_unknown(piece);
    ids.push_back(unknown_);
  }

  Vocabulary vocabulary_;
  std::vector<double> scores_;
  Trie trie_;
  std::int32_t unknown_ = -1;
  double unknown_score_ = 0;
  bool byte_fallback_;
};

}  // namespace

std::unique_ptr<Model> make_unigram(const JsonPart& part) {
  return std::make_unique<Unigram>(part);
}

}  // namespace t3d::tok
