#include "data/tokenize.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/error.hpp"
#include "data/corpus.hpp"
#include "data/file_list.hpp"
#include "data/tokenizer/tokenizer.hpp"
#include "io/hdf5/token_file.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

constexpr index_t kPieceBytes = 1 << 20;

std::unique_ptr<Tokenizer> choose_tokenizer(const std::vector<std::string>& inputs,
                                            const TokenizeOptions& options) {
  if (!options.model_file.empty()) return load_tokenizer(options.model_file);
  if (options.kind == "bytes") return make_byte_tokenizer();
  return make_sentencepiece_tokenizer(train_sentencepiece(inputs, options.kind, options.vocab));
}

/// Returns the number of tokens.
index_t write_range(const Corpus& corpus, index_t begin, index_t end, const Tokenizer& tokenizer,
                    const std::string& path, const std::string& source) {
  TokenFileWriter writer(path,
                         {tokenizer.vocab(), tokenizer.kind(), tokenizer.model(), source, 0, 0});
  index_t tokens = 0;
  while (begin < end) {
    const std::string text = corpus.piece(begin, end, kPieceBytes);
    const auto ids = tokenizer.encode(text);
    writer.append(ids.data(), std::ssize(ids));
    writer.add_text_bytes(std::ssize(text));
    tokens += std::ssize(ids);
    begin += std::ssize(text);
  }
  writer.finish();
  return tokens;
}

}  // namespace

TokenizeResult tokenize_corpus(const std::vector<std::string>& inputs, const std::string& prefix,
                               const TokenizeOptions& options) {
  const double fraction = options.valid_fraction;
  if (!(fraction >= 0.0 && fraction < 1.0))
    throw_error(ExitCode::config, "a valid fraction of {} is not in [0, 1)", fraction);
  const std::vector<std::string> files = list_files(inputs);
  const Corpus corpus(files);
  const auto tokenizer = choose_tokenizer(inputs, options);
  const auto wanted = std::llround(static_cast<double>(corpus.bytes()) * (1.0 - fraction));
  const index_t cut = corpus.line_start(wanted);
  const std::string source =
      files.size() == 1 ? files[0] : fmt::format("{} and {} more", files[0], files.size() - 1);

  TokenizeResult result;
  result.vocab = tokenizer->vocab();
  result.text_bytes = corpus.bytes();
  result.train_path = prefix + "-train.h5";
  result.train_tokens = write_range(corpus, 0, cut, *tokenizer, result.train_path, source);
  if (fraction > 0.0) {
    result.valid_path = prefix + "-valid.h5";
    result.valid_tokens =
        write_range(corpus, cut, corpus.bytes(), *tokenizer, result.valid_path, source);
  }
  return result;
}

}  // namespace t3d
