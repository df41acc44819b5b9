#include "data/token_formats.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "core/error.hpp"
#include "data/tokenizer.hpp"
#include "io/hdf5/token_file.hpp"
#include "io/posix_file.hpp"

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
  std::uint64_t tokenizer_hash() const override {
    return t3d::tokenizer_hash(reader_.info().tokenizer, reader_.info().model);
  }
  std::vector<CorpusFile> files() const override {
    return {{path_, file_size(path_), size(), reader_.checksum()}};
  }

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
    return fmt::format("{}: {} tokens of {} byte{}", file_.path(), size_, width_,
                       width_ == 1 ? "" : "s");
  }
  std::uint64_t tokenizer_hash() const override {
    return width_ == 1 ? t3d::tokenizer_hash("bytes", {}) : 0;
  }
  std::vector<CorpusFile> files() const override {
    return {{file_.path(), file_.size(), size_, 0}};
  }

 private:
  FileReader file_;
  index_t header_ = 0, width_ = 0, size_ = 0;
  std::vector<std::byte> buffer_;
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

/// What a file's first bytes say; nothing where the format has no signature.
std::optional<TokenFormat> signature_of(const std::string& path) {
  if (is_hdf5_file(path)) return TokenFormat::hdf5;
  if (is_llmc(path)) return TokenFormat::llmc;
  return std::nullopt;
}

TokenFormat format_of(const std::string& path, TokenFormat wanted) {
  const std::optional<TokenFormat> signature = signature_of(path);
  if (wanted != TokenFormat::automatic) {
    if (signature && *signature != wanted)
      throw_error(
          ExitCode::config,
          "{} is {} by its signature, but data.format = \"{}\"; with data.format = \"auto\" "
          "the signature decides",
          path, *signature, wanted);
    return wanted;
  }
  if (signature) return *signature;
  if (path.ends_with(".txt")) return TokenFormat::bytes;
  throw_error(ExitCode::config,
              "cannot tell what {} is; say the format: hdf5, llmc, u16, u32 or bytes", path);
}

}  // namespace

std::shared_ptr<TokenSource> open_token_file(const std::string& path, TokenFormat format) {
  switch (format_of(path, format)) {
    case TokenFormat::hdf5: return std::make_shared<TokenFileSource>(path);
    case TokenFormat::llmc: return open_llmc(path);
    case TokenFormat::u16: return std::make_shared<FlatSource>(path, 0, 2);
    case TokenFormat::u32: return std::make_shared<FlatSource>(path, 0, 4);
    case TokenFormat::bytes: return std::make_shared<FlatSource>(path, 0, 1);
    case TokenFormat::automatic: break;  // format_of has decided
  }
  throw_error(ExitCode::internal, "no format for {}", path);
}

}  // namespace t3d
