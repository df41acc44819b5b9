#include "data/token_formats.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "core/error.hpp"
#include "data/megatron_index.hpp"
#include "io/hdf5/token_file.hpp"
#include "io/posix_file.hpp"
#include "tokenizer/sentencepiece_json.hpp"
#include "tokenizer/tokenizer.hpp"

namespace t3d {
namespace {

class TokenFileSource final : public TokenSource {
 public:
  explicit TokenFileSource(TokenCard card) : card_(std::move(card)) {}
  index_t size() const override { return info().tokens; }
  index_t vocab() const override { return info().vocab; }
  double bytes_per_token() const override {
    if (partial_loss()) return 0.0;  // the loss is of a part of the text
    return size() == 0 ? 0.0 : static_cast<double>(info().text_bytes) / static_cast<double>(size());
  }
  void read(index_t first, index_t count, std::int32_t* out) override {
    reader().read(first, count, out);
  }
  bool partial_loss() const override { return info().partial_loss; }
  void read_counts(index_t first, index_t count, std::uint8_t* out) override {
    reader().read_counts(first, count, out);
  }
  std::string describe() const override {
    std::string text = fmt::format("{}: {} tokens, vocabulary {}, {}", card_.path, size(), vocab(),
                                   tokenizer_text());
    if (info().documents > 0) text += fmt::format(", {} documents", info().documents);
    return text;
  }
  std::string tokenizer_model() const override { return info().model; }
  std::uint64_t tokenizer_hash() const override {
    return t3d::tokenizer_hash(info().tokenizer, info().model);
  }
  SpecialIds special_ids() const override { return info().special; }
  index_t documents() const override { return info().documents; }
  std::vector<CorpusFile> files() const override {
    return {{card_.path, card_.bytes, size(), card_.header.checksum}};
  }

 private:
  [[nodiscard]] const TokenFileInfo& info() const { return card_.header.info; }
  [[nodiscard]] std::string tokenizer_text() const {
    if (info().tokenizer != "sentencepiece" || info().model.empty()) return info().tokenizer;
    return fmt::format("{} ({})", info().tokenizer, algorithm_of_sentencepiece(info().model));
  }
  TokenFileReader& reader() {
    if (!reader_) reader_.emplace(card_.path, card_.header);
    return *reader_;
  }

  TokenCard card_;
  std::optional<TokenFileReader> reader_;
};

/// Little-endian ids of 1, 2 or 4 bytes behind a header.
class FlatSource final : public TokenSource {
 public:
  explicit FlatSource(TokenCard card) : card_(std::move(card)) {}
  index_t size() const override { return (card_.bytes - card_.header_bytes) / card_.id_bytes; }
  index_t vocab() const override { return card_.id_bytes == 1 ? 256 : 0; }
  double bytes_per_token() const override { return card_.id_bytes == 1 ? 1.0 : 0.0; }
  void read(index_t first, index_t count, std::int32_t* out) override {
    T3D_CHECK(first >= 0 && count >= 0 && first + count <= size(), "tokens {}+{} of {}", first,
              count, size());
    const index_t width = card_.id_bytes;
    buffer_.resize(static_cast<std::size_t>(count * width));
    file().read_at(card_.header_bytes + first * width, buffer_.data(), count * width);
    for (index_t n = 0; n < count; ++n) {
      std::uint32_t id = 0;
      std::memcpy(&id, buffer_.data() + n * width, static_cast<std::size_t>(width));
      out[n] = static_cast<std::int32_t>(id);  // above 2^31: negative, and refused as such
    }
  }
  std::string describe() const override {
    std::string text = fmt::format("{}: {} tokens of {} byte{}", card_.path, size(), card_.id_bytes,
                                   card_.id_bytes == 1 ? "" : "s");
    if (documents() > 0) text += fmt::format(", {} documents", documents());
    return text;
  }
  index_t documents() const override { return card_.header.info.documents; }
  std::uint64_t tokenizer_hash() const override {
    return card_.id_bytes == 1 ? t3d::tokenizer_hash("bytes", {}) : 0;
  }
  std::vector<CorpusFile> files() const override {
    return {{card_.path, card_.bytes, size(), card_.header.checksum}};
  }

 private:
  const FileReader& file() {
    if (!file_) file_.emplace(card_.path);
    if (file_->size() != card_.bytes)
      throw_error(ExitCode::io, "{} has {} bytes, and had {} when the job started", card_.path,
                  file_->size(), card_.bytes);
    return *file_;
  }

  TokenCard card_;
  std::optional<FileReader> file_;
  std::vector<std::byte> buffer_;
};

TokenCard flat_card(const std::string& path, index_t header_bytes, index_t id_bytes) {
  TokenCard card{path, FileReader(path).size(), header_bytes, id_bytes, {}};
  if ((card.bytes - header_bytes) % id_bytes != 0)
    throw_error(ExitCode::io, "{} has {} bytes, which is no whole number of {}-byte tokens", path,
                card.bytes, id_bytes);
  return card;
}

TokenCard hdf5_card(const std::string& path) {
  TokenCard card;
  card.path = path;
  card.header = TokenFileReader(path).header();
  card.bytes = file_size(path);
  return card;
}

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

TokenCard llmc_card(const std::string& path) {
  const auto [magic, version, tokens] = llmc_header(path);
  for (const LlmcKind& kind : kLlmcKinds) {
    if (magic != kind.magic) continue;
    if (version != kind.version)
      throw_error(ExitCode::io, "{}: version {} of a token shard, {} expected", path, version,
                  kind.version);
    TokenCard card = flat_card(path, kLlmcHeader, kind.width);
    if (const index_t held = (card.bytes - kLlmcHeader) / kind.width; held != tokens)
      throw_error(ExitCode::io, "{} holds {} tokens, its header says {}", path, held, tokens);
    return card;
  }
  throw_error(ExitCode::io, "{} is not a token shard of llm.c (it starts with {})", path, magic);
}

/// NAME.idx and NAME.bin, whichever of them is named; empty for other names.
std::string megatron_sibling(const std::string& path, const std::string& ending) {
  if (!path.ends_with(".bin") && !path.ends_with(".idx")) return {};
  return path.substr(0, path.size() - 4) + ending;
}

bool is_megatron(const std::string& path) {
  const std::string index = megatron_sibling(path, ".idx");
  return !index.empty() && path_exists(index) && is_megatron_index(index);
}

TokenCard megatron_card(const std::string& path) {
  const std::string index_path = megatron_sibling(path, ".idx");
  if (index_path.empty())
    throw_error(ExitCode::config, "{} is neither .bin nor .idx, as Megatron's files are", path);
  const MegatronIndex index = read_megatron_index(index_path);
  TokenCard card = flat_card(megatron_sibling(path, ".bin"), 0, index.id_bytes);
  if (const index_t held = card.bytes / index.id_bytes; held != index.tokens)
    throw_error(ExitCode::io, "{} holds {} tokens, its index says {}", card.path, held,
                index.tokens);
  card.header.info.documents = index.documents;
  card.header.checksum = index.checksum;
  return card;
}

/// What a file's first bytes say; nothing where the format has no signature.
std::optional<TokenFormat> signature_of(const std::string& path) {
  if (is_megatron(path)) return TokenFormat::megatron;
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
              "cannot tell what {} is; say the format: hdf5, llmc, megatron, u16, u32 or bytes",
              path);
}

}  // namespace

TokenCard read_token_card(const std::string& path, TokenFormat format) {
  switch (format_of(path, format)) {
    case TokenFormat::hdf5: return hdf5_card(path);
    case TokenFormat::llmc: return llmc_card(path);
    case TokenFormat::megatron: return megatron_card(path);
    case TokenFormat::u16: return flat_card(path, 0, 2);
    case TokenFormat::u32: return flat_card(path, 0, 4);
    case TokenFormat::bytes: return flat_card(path, 0, 1);
    case TokenFormat::automatic: break;  // format_of has decided
  }
  throw_error(ExitCode::internal, "no format for {}", path);
}

std::shared_ptr<TokenSource> open_token_file(TokenCard card) {
  if (card.id_bytes == 0) return std::make_shared<TokenFileSource>(std::move(card));
  return std::make_shared<FlatSource>(std::move(card));
}

}  // namespace t3d
