#include "data/token_source.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "data/token_formats.hpp"

namespace t3d {
namespace {

class MemorySource final : public TokenSource {
 public:
  MemorySource(std::vector<std::int32_t> ids, index_t vocab)
      : ids_(std::move(ids)), vocab_(vocab) {}
  index_t size() const override { return std::ssize(ids_); }
  index_t vocab() const override { return vocab_; }
  double bytes_per_token() const override { return 0.0; }
  void read(index_t first, index_t count, std::int32_t* out) override {
    T3D_CHECK(first >= 0 && count >= 0 && first + count <= size(), "tokens {}+{} of {}", first,
              count, size());
    std::copy_n(ids_.begin() + first, count, out);
  }
  std::string describe() const override {
    return fmt::format("memory: {} tokens, vocabulary {}", size(), vocab_);
  }

 private:
  std::vector<std::int32_t> ids_;
  index_t vocab_ = 0;
};

/// Several sources one after another; checks every id.
class JoinedSource final : public TokenSource {
 public:
  JoinedSource(std::vector<std::shared_ptr<TokenSource>> sources, index_t vocab)
      : sources_(std::move(sources)), vocab_(vocab) {
    for (const auto& source : sources_) {
      ends_.push_back(size() + source->size());
      if (vocab > 0 && source->vocab() > vocab)
        throw_error(ExitCode::config,
                    "{}: the model's vocabulary is {}, and these need model.vocab >= {} (where it "
                    "is left out and no weights are begun from, the files say it)",
                    source->describe(), vocab, source->vocab());
      vocab_ = std::max(vocab_, source->vocab());
      if (source->tokenizer_hash() != sources_.front()->tokenizer_hash())
        throw_error(ExitCode::config, "{}: another tokenizer than {}", source->describe(),
                    sources_.front()->describe());
    }
  }
  index_t size() const override { return ends_.empty() ? 0 : ends_.back(); }
  index_t vocab() const override { return vocab_; }
  double bytes_per_token() const override {
    double bytes = 0;
    for (const auto& source : sources_) {
      if (source->bytes_per_token() <= 0) return 0;
      bytes += source->bytes_per_token() * static_cast<double>(source->size());
    }
    return size() == 0 ? 0 : bytes / static_cast<double>(size());
  }
  void read(index_t first, index_t count, std::int32_t* out) override {
    visit(first, count, [&](TokenSource& source, index_t from, index_t now) {
      source.read(from, now, out);
      check_ids(out, now, from, source);
      out += now;
    });
  }
  bool partial_loss() const override {
    return std::any_of(sources_.begin(), sources_.end(),
                       [](const auto& source) { return source->partial_loss(); });
  }
  void read_counts(index_t first, index_t count, std::uint8_t* out) override {
    visit(first, count, [&](TokenSource& source, index_t from, index_t now) {
      source.read_counts(from, now, out);
      out += now;
    });
  }
  std::string describe() const override {
    std::string text = sources_.front()->describe();
    if (sources_.size() > 1)
      text += fmt::format(" ... ({} files, {} tokens)", sources_.size(), size());
    return text;
  }
  std::string tokenizer_model() const override { return sources_.front()->tokenizer_model(); }
  std::uint64_t tokenizer_hash() const override { return sources_.front()->tokenizer_hash(); }
  SpecialIds special_ids() const override { return sources_.front()->special_ids(); }
  index_t documents() const override {
    index_t all = 0;
    for (const auto& source : sources_) all += source->documents();
    return all;
  }
  std::vector<CorpusFile> files() const override {
    std::vector<CorpusFile> all;
    for (const auto& source : sources_)
      for (CorpusFile& file : source->files()) all.push_back(std::move(file));
    return all;
  }

 private:
  /// Calls read(source, first of it, count) for the parts of a range.
  template <class Read>
  void visit(index_t first, index_t count, const Read& read) {
    T3D_CHECK(first >= 0 && count >= 0 && first + count <= size(), "tokens {}+{} of {}", first,
              count, size());
    auto at = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), first) -
                                       ends_.begin());
    for (; count > 0; ++at) {
      const index_t begin = ends_[at] - sources_[at]->size();
      const index_t now = std::min(count, ends_[at] - first);
      read(*sources_[at], first - begin, now);
      first += now;
      count -= now;
    }
  }
  void check_ids(const std::int32_t* ids, index_t count, index_t first,
                 const TokenSource& source) const {
    for (index_t n = 0; n < count; ++n)
      if (ids[n] < 0 || (vocab_ > 0 && ids[n] >= vocab_))
        throw_error(ExitCode::config, "{}: token {} at position {} is outside the vocabulary of {}",
                    source.describe(), ids[n], first + n, vocab_);
  }

  std::vector<std::shared_ptr<TokenSource>> sources_;
  std::vector<index_t> ends_;
  index_t vocab_ = 0;
};

}  // namespace

std::shared_ptr<TokenSource> make_token_source(const std::vector<std::string>& patterns,
                                               TokenFormat format, index_t vocab) {
  return make_token_source(read_token_cards(patterns, format), vocab);
}

std::shared_ptr<TokenSource> make_token_source(std::vector<TokenCard> cards, index_t vocab) {
  std::vector<std::shared_ptr<TokenSource>> sources;
  for (TokenCard& card : cards) sources.push_back(open_token_file(std::move(card)));
  return make_joined_source(std::move(sources), vocab);
}

std::shared_ptr<TokenSource> make_joined_source(std::vector<std::shared_ptr<TokenSource>> sources,
                                                index_t vocab) {
  return std::make_shared<JoinedSource>(std::move(sources), vocab);
}

std::shared_ptr<TokenSource> make_memory_source(std::vector<std::int32_t> ids, index_t vocab) {
  return std::make_shared<MemorySource>(std::move(ids), vocab);
}

}  // namespace t3d
