#include "data/token_source.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/error.hpp"
#include "data/file_list.hpp"
#include "io/posix_file.hpp"
#include "io/hdf5/token_file.hpp"

namespace t3d {
namespace {

class TokenFileSource final : public TokenSource {
 public:
  explicit TokenFileSource(const std::string& path) : path_(path), reader_(path) {}
  index_t size() const override { return reader_.info().tokens; }
  index_t vocab() const override { return reader_.info().vocab; }
  double bytes_per_token() const override {
    return size() == 0
               ? 0.0
               : static_cast<double>(reader_.info().text_bytes) / static_cast<double>(size());
  }
  void read(index_t first, index_t count, std::int32_t* out) override {
    reader_.read(first, count, out);
  }
  std::string describe() const override {
    return fmt::format("{}: {} tokens, vocabulary {}, {}", path_, size(), vocab(),
                       reader_.info().tokenizer);
  }
  std::string tokenizer_model() const override { return reader_.info().model; }

 private:
  std::string path_;
  TokenFileReader reader_;
};

/// Little-endian ids of 1, 2 or 4 bytes behind a header.
class FlatSource final : public TokenSource {
 public:
  FlatSource(const std::string& path, index_t header_bytes, index_t id_bytes)
      : file_(path), header_(header_bytes), width_(id_bytes) {
    if ((file_.size() - header_) % width_ != 0)
      throw_error(ExitCode::io, "{} has {} bytes, which is no whole number of {}-byte tokens", path,
                  file_.size(), width_);
    size_ = (file_.size() - header_) / width_;
  }
  index_t size() const override { return size_; }
  index_t vocab() const override { return width_ == 1 ? 256 : 0; }
  double bytes_per_token() const override { return width_ == 1 ? 1.0 : 0.0; }
  void read(index_t first, index_t count, std::int32_t* out) override {
    T3D_CHECK(first >= 0 && count >= 0 && first + count <= size_, "tokens {}+{} of {}", first,
              count, size_);
    buffer_.resize(static_cast<std::size_t>(count * width_));
    file_.read_at(header_ + first * width_, buffer_.data(), count * width_);
    for (index_t n = 0; n < count; ++n) {
      std::uint32_t id = 0;
      std::memcpy(&id, buffer_.data() + n * width_, static_cast<std::size_t>(width_));
      out[n] = static_cast<std::int32_t>(id);  // above 2^31: negative, and refused as such
    }
  }
  std::string describe() const override {
    return fmt::format("{}: {} tokens of {} bytes", file_.path(), size_, width_);
  }

 private:
  FileReader file_;
  index_t header_ = 0, width_ = 0, size_ = 0;
  std::vector<std::byte> buffer_;
};

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

struct LlmcKind {
  std::int32_t magic, version;
  index_t width;
};
constexpr std::array<LlmcKind, 2> kLlmcKinds{{{20240520, 1, 2}, {20240801, 7, 4}}};
constexpr index_t kLlmcHeader = 256 * 4;

/// The first three numbers of the header; zeros when the file is shorter than a header.
std::array<std::int32_t, 3> llmc_header(const std::string& path) {
  std::array<std::int32_t, 3> header{};
  const FileReader file(path);
  if (file.size() >= kLlmcHeader) file.read_at(0, header.data(), sizeof header);
  return header;
}

bool is_llmc(const std::string& path) {
  const std::int32_t magic = llmc_header(path)[0];
  return std::any_of(kLlmcKinds.begin(), kLlmcKinds.end(),
                     [&](const LlmcKind& kind) { return kind.magic == magic; });
}

std::shared_ptr<TokenSource> open_llmc(const std::string& path) {
  const auto [magic, version, tokens] = llmc_header(path);
  for (const LlmcKind& kind : kLlmcKinds) {
    if (magic != kind.magic) continue;
    if (version != kind.version)
      throw_error(ExitCode::io, "{}: version {} of a token shard, {} expected", path, version,
                  kind.version);
    auto source = std::make_shared<FlatSource>(path, kLlmcHeader, kind.width);
    if (source->size() != tokens)
      throw_error(ExitCode::io, "{} holds {} tokens, its header says {}", path, source->size(),
                  tokens);
    return source;
  }
  throw_error(ExitCode::io, "{} is not a token shard of llm.c (it starts with {})", path, magic);
}

std::string format_of(const std::string& path) {
  if (is_hdf5_file(path)) return "hdf5";
  if (is_llmc(path)) return "llmc";
  if (path.ends_with(".txt")) return "bytes";
  throw_error(ExitCode::config,
              "cannot tell what {} is; say the format: hdf5, llmc, u16, u32 or bytes", path);
}

std::shared_ptr<TokenSource> open_source(const std::string& path, const std::string& format) {
  if (format == "auto") return open_source(path, format_of(path));
  if (format == "hdf5") return std::make_shared<TokenFileSource>(path);
  if (format == "llmc") return open_llmc(path);
  if (format == "u16") return std::make_shared<FlatSource>(path, 0, 2);
  if (format == "u32") return std::make_shared<FlatSource>(path, 0, 4);
  if (format == "bytes") return std::make_shared<FlatSource>(path, 0, 1);
  throw_error(ExitCode::config,
              "unknown corpus format \"{}\"; one of auto, hdf5, llmc, u16, u32, bytes", format);
}

/// Several sources one after another; checks every id.
class JoinedSource final : public TokenSource {
 public:
  JoinedSource(std::vector<std::shared_ptr<TokenSource>> sources, index_t vocab)
      : sources_(std::move(sources)), vocab_(vocab) {
    for (const auto& source : sources_) {
      ends_.push_back(size() + source->size());
      if (source->vocab() == 0) continue;
      if (vocab > 0 && source->vocab() > vocab)
        throw_error(ExitCode::config, "{}: the model's vocabulary is {}", source->describe(),
                    vocab);
      vocab_ = std::max(vocab_, source->vocab());
      if (source->tokenizer_model() != sources_.front()->tokenizer_model())
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
    T3D_CHECK(first >= 0 && count >= 0 && first + count <= size(), "tokens {}+{} of {}", first,
              count, size());
    auto at = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), first) -
                                       ends_.begin());
    for (; count > 0; ++at) {
      const index_t begin = ends_[at] - sources_[at]->size();
      const index_t now = std::min(count, ends_[at] - first);
      sources_[at]->read(first - begin, now, out);
      check_ids(out, now, first - begin, *sources_[at]);
      first += now;
      out += now;
      count -= now;
    }
  }
  std::string describe() const override {
    std::string text = sources_.front()->describe();
    if (sources_.size() > 1)
      text += fmt::format(" ... ({} files, {} tokens)", sources_.size(), size());
    return text;
  }
  std::string tokenizer_model() const override { return sources_.front()->tokenizer_model(); }

 private:
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
                                               const std::string& format, index_t vocab) {
  std::vector<std::shared_ptr<TokenSource>> sources;
  for (const std::string& path : list_files(patterns)) sources.push_back(open_source(path, format));
  return std::make_shared<JoinedSource>(std::move(sources), vocab);
}

std::shared_ptr<TokenSource> make_memory_source(std::vector<std::int32_t> ids, index_t vocab) {
  return std::make_shared<MemorySource>(std::move(ids), vocab);
}

}  // namespace t3d
