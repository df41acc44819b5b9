#include "io/hdf5/token_file.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/error.hpp"
#include "io/crc32c.hpp"
#include "io/hdf5/h5_file.hpp"
#include "io/partial_file.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

constexpr const char* kFormat = "transformer3d tokens";
constexpr std::int64_t kVersion = 1;
constexpr index_t kWideVocab = 65536;  // larger ones need 32 bits

index_t bytes_per_id(index_t vocab) { return vocab <= kWideVocab ? 2 : 4; }
hid_t type_of_ids(index_t vocab) {
  const H5Guard guard;
  return vocab <= kWideVocab ? H5T_STD_U16LE : H5T_STD_U32LE;
}

std::uint32_t block_crc(const void* data, index_t bytes, index_t block) {
  return crc32c(data, static_cast<std::size_t>(bytes), block_seed(crc32c("tokens"), block));
}

std::uint32_t header_crc(const TokenFileInfo& info, const std::vector<std::uint32_t>& table) {
  std::uint32_t crc = crc32c(fmt::format("{}\n{}\n{}\n{}\n{}\n", info.vocab, info.tokenizer,
                                         info.source, info.text_bytes, info.tokens));
  crc = crc32c(info.model, crc);
  return crc32c(table.data(), table.size() * sizeof table[0], crc);
}

}  // namespace

struct TokenFileWriter::Impl {
  PartialFile partial;
  TokenFileInfo info;
  H5File file;
  H5Id tokens;
  std::vector<std::byte> buffer;  // up to one block
  std::vector<std::uint32_t> table;

  Impl(std::string path, TokenFileInfo info_)
      : partial(std::move(path)), info(std::move(info_)), file(H5File::create(partial.name())) {
    info.tokens = 0;
    tokens = file.create_growing("tokens", type_of_ids(info.vocab),
                                 kCrcBlockBytes / bytes_per_id(info.vocab));
  }
  void flush() {
    if (buffer.empty()) return;
    const index_t bytes = std::ssize(buffer);
    table.push_back(block_crc(buffer.data(), bytes, std::ssize(table)));
    file.append(tokens, type_of_ids(info.vocab), bytes / bytes_per_id(info.vocab), buffer.data());
    buffer.clear();
  }
  void write_header() {
    file.write_attribute("format", std::string(kFormat));
    file.write_attribute("version", kVersion);
    file.write_attribute("vocab", std::int64_t{info.vocab});
    file.write_attribute("tokenizer", info.tokenizer);
    file.write_attribute("source", info.source);
    file.write_attribute("text_bytes", std::int64_t{info.text_bytes});
    file.write_attribute("crc32c", std::int64_t{header_crc(info, table)});
    write_bytes("block_crc32c", H5T_STD_U32LE, std::ssize(table), table.data());
    write_bytes("tokenizer_model", H5T_STD_U8LE, std::ssize(info.model), info.model.data());
  }
  void write_bytes(const std::string& name, hid_t type, index_t count, const void* data) const {
    if (count == 0) return;
    H5Id dataset = file.create_contiguous(name, type, 1, count, true);
    file.write_rows(dataset, type, 0, 1, count, true, data);
    dataset.close();
  }
};

TokenFileWriter::TokenFileWriter(std::string path, TokenFileInfo info)
    : impl_(std::make_unique<Impl>(std::move(path), std::move(info))) {}

TokenFileWriter::~TokenFileWriter() = default;

void TokenFileWriter::append(const std::int32_t* ids, index_t count) {
  const auto width = static_cast<std::size_t>(bytes_per_id(impl_->info.vocab));
  for (index_t n = 0; n < count; ++n) {
    const std::int32_t id = ids[n];
    if (id < 0 || id >= impl_->info.vocab)
      throw_error(ExitCode::config, "{}: token {} is outside the vocabulary of {}",
                  impl_->partial.path(), id, impl_->info.vocab);
    const auto* first = reinterpret_cast<const std::byte*>(&id);  // little-endian hosts only
    impl_->buffer.insert(impl_->buffer.end(), first, first + width);
    if (std::ssize(impl_->buffer) == kCrcBlockBytes) impl_->flush();
  }
  impl_->info.tokens += count;
}

void TokenFileWriter::add_text_bytes(index_t bytes) { impl_->info.text_bytes += bytes; }

void TokenFileWriter::finish() {
  impl_->flush();
  impl_->tokens.close();
  impl_->write_header();
  impl_->file.close();
  impl_->partial.publish();
}

struct TokenFileReader::Impl {
  H5File file;
  TokenFileHeader header;
  H5Id tokens;
  std::vector<bool> verified;
  std::vector<std::byte> buffer;

  explicit Impl(const std::string& path) : file(H5File::open(path)) {
    TokenFileInfo& info = header.info;
    if (!file.has("tokens") || file.read_string("format") != kFormat)
      throw_error(ExitCode::io, "{} is not a token file", path);
    if (const auto version = file.read_integer("version"); version != kVersion)
      throw_error(ExitCode::io, "{} is a token file of version {}, not {}", path, version,
                  kVersion);
    info.vocab = file.read_integer("vocab");
    if (info.vocab < 1 || info.vocab > std::numeric_limits<std::int32_t>::max())
      throw_error(ExitCode::io, "{} is damaged (a vocabulary of {})", path, info.vocab);
    info.tokenizer = file.read_string("tokenizer");
    info.source = file.read_string("source");
    info.text_bytes = file.read_integer("text_bytes");
    tokens = file.open_dataset("tokens");
    info.tokens = file.length_of(tokens);
    if (info.text_bytes < 0 ||
        info.tokens > std::numeric_limits<index_t>::max() / 2 / bytes_per_id(info.vocab))
      throw_error(ExitCode::io, "{} is damaged ({} tokens of {} bytes of text)", path, info.tokens,
                  info.text_bytes);
    read_all("block_crc32c", H5T_STD_U32LE, header.block_crcs);
    read_all("tokenizer_model", H5T_STD_U8LE, info.model);
    verified.resize(header.block_crcs.size());
    header.checksum = header_crc(info, header.block_crcs);
    const bool sound =
        file.read_integer("crc32c") == header.checksum &&
        std::ssize(header.block_crcs) == crc_blocks(info.tokens * bytes_per_id(info.vocab));
    if (!sound) throw_error(ExitCode::io, "{} is damaged (its header)", path);
  }
  Impl(const std::string& path, TokenFileHeader known)
      : file(H5File::open(path)), header(std::move(known)), tokens(file.open_dataset("tokens")) {
    if (const index_t now = file.length_of(tokens); now != header.info.tokens)
      throw_error(ExitCode::io, "{} has {} tokens, and had {} when the job started", path, now,
                  header.info.tokens);
    verified.resize(header.block_crcs.size());
  }
  template <class Array>
  void read_all(const std::string& name, hid_t type, Array& out) const {
    if (!file.has(name)) return;
    const H5Id dataset = file.open_dataset(name);
    const index_t length = file.length_of(dataset);
    if (length > file_size(file.path()))
      throw_error(ExitCode::io, "{} is damaged ({})", file.path(), name);
    out.resize(static_cast<std::size_t>(length));
    file.read_range(dataset, type, 0, length, out.data());
  }
  void read_raw(index_t first, index_t count) {
    buffer.resize(static_cast<std::size_t>(count * bytes_per_id(header.info.vocab)));
    file.read_range(tokens, type_of_ids(header.info.vocab), first, count, buffer.data());
  }
  void verify_block(index_t block) {
    if (verified[static_cast<std::size_t>(block)]) return;
    const index_t each = kCrcBlockBytes / bytes_per_id(header.info.vocab);
    read_raw(block * each, std::min(each, header.info.tokens - block * each));
    if (block_crc(buffer.data(), std::ssize(buffer), block) !=
        header.block_crcs[static_cast<std::size_t>(block)])
      throw_error(ExitCode::io, "{} is damaged (tokens, block {})", file.path(), block);
    verified[static_cast<std::size_t>(block)] = true;
  }
};

TokenFileReader::TokenFileReader(const std::string& path) {
  static_cast<void>(FileReader(path));  // says "does not exist" better than HDF5
  impl_ = std::make_unique<Impl>(path);
}

TokenFileReader::TokenFileReader(const std::string& path, TokenFileHeader header) {
  static_cast<void>(FileReader(path));
  impl_ = std::make_unique<Impl>(path, std::move(header));
}

TokenFileReader::~TokenFileReader() = default;

const TokenFileHeader& TokenFileReader::header() const { return impl_->header; }

void TokenFileReader::read(index_t first, index_t count, std::int32_t* out) {
  T3D_CHECK(first >= 0 && count >= 0 && first + count <= impl_->header.info.tokens,
            "tokens {}+{} of {}", first, count, impl_->header.info.tokens);
  if (count == 0) return;
  const index_t width = bytes_per_id(impl_->header.info.vocab);
  const index_t last = (first + count - 1) * width / kCrcBlockBytes;
  for (index_t block = first * width / kCrcBlockBytes; block <= last; ++block)
    impl_->verify_block(block);
  impl_->read_raw(first, count);
  for (index_t n = 0; n < count; ++n) {
    std::uint32_t id = 0;
    std::memcpy(&id, impl_->buffer.data() + n * width, static_cast<std::size_t>(width));
    out[n] = static_cast<std::int32_t>(id);
  }
}

void TokenFileReader::verify() {
  for (index_t block = 0; block < std::ssize(impl_->header.block_crcs); ++block)
    impl_->verify_block(block);
}

bool is_hdf5_file(const std::string& path) {
  constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";
  const FileReader file(path);
  if (file.size() < std::ssize(kSignature)) return false;
  std::string start(kSignature.size(), '\0');
  file.read_at(0, start.data(), std::ssize(start));
  return start == kSignature;
}

}  // namespace t3d
