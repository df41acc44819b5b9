#include "io/hdf5/token_file.hpp"

#include <cerrno>
#include <limits>
#include <optional>
#include <sstream>

#include "core/error.hpp"
#include "io/hdf5/token_file_header.hpp"
#include "io/posix_file.hpp"
#include "io/read_patience.hpp"

namespace t3d {

using namespace token_file;

namespace {

template <class Array>
void read_values(const H5File& file, const std::string& name, hid_t type, Array& out) {
  if (!file.has(name)) return;
  const H5Id dataset = file.open_dataset(name);
  const index_t length = file.length_of(dataset);
  if (length > file_size(file.path()))
    throw_error(ExitCode::io, "{} is damaged ({})", file.path(), name);
  out.resize(static_cast<std::size_t>(length));
  file.read_range(dataset, type, 0, length, out.data());
}

std::int32_t read_id(const H5File& file, const std::string& name, index_t vocab) {
  const std::int64_t id = file.read_integer(name);
  if (id < -1 || id >= vocab)
    throw_error(ExitCode::io, "{} is damaged ({} is {}, of a vocabulary of {})", file.path(), name,
                id, vocab);
  return static_cast<std::int32_t>(id);
}

void read_ends(const H5File& file, TokenFileInfo& info) {
  std::istringstream words(file.read_string(kEnds));
  for (std::int32_t id = 0; words >> id;) {
    if (id < 0 || id >= info.vocab)
      throw_error(ExitCode::io, "{} is damaged (a text ends with {}, of a vocabulary of {})",
                  file.path(), id, info.vocab);
    info.special.ends.push_back(id);
  }
  if (const std::int64_t adds = file.read_integer(kAddsBos); adds >= 0)
    info.special.adds_bos = adds != 0;
}

void read_info(const H5File& file, std::int64_t version, TokenFileInfo& info) {
  const std::string& path = file.path();
  info.vocab = file.read_integer("vocab");
  if (info.vocab < 1 || info.vocab > std::numeric_limits<std::int32_t>::max())
    throw_error(ExitCode::io, "{} is damaged (a vocabulary of {})", path, info.vocab);
  info.tokenizer = file.read_string("tokenizer");
  info.source = file.read_string("source");
  info.text_bytes = file.read_integer("text_bytes");
  info.tokens = file.length_of(file.open_dataset("tokens"));
  if (info.text_bytes < 0 ||
      info.tokens > std::numeric_limits<index_t>::max() / 2 / ids_of(info.vocab).bytes)
    throw_error(ExitCode::io, "{} is damaged ({} tokens of {} bytes of text)", path, info.tokens,
                info.text_bytes);
  if (file.has_attribute(kUnicode)) info.unicode = file.read_string(kUnicode);
  if (version == 1) return;
  info.documents = file.read_integer("documents");
  if (info.documents < 0 || info.documents > info.tokens)
    throw_error(ExitCode::io, "{} is damaged ({} documents of {} tokens)", path, info.documents,
                info.tokens);
  for (const auto& [name, id] : named_ids(info.special)) *id = read_id(file, name, info.vocab);
  info.partial_loss = file.has(kLossBits);
  if (version > 2) read_ends(file, info);
}

TokenFileHeader read_header(const H5File& file) {
  const std::string& path = file.path();
  if (!file.has("tokens") || file.read_string("format") != kFormat)
    throw_error(ExitCode::io, "{} is not a token file", path);
  const std::int64_t version = file.read_integer("version");
  if (version < 1 || version > kVersion)
    throw_error(ExitCode::io,
                "{} is a token file of version {}, and this program reads up to version {}", path,
                version, kVersion);
  TokenFileHeader header;
  read_info(file, version, header.info);
  for (const auto& [name, table] : crc_tables(header))
    read_values(file, name, H5T_STD_U32LE, *table);
  read_values(file, "tokenizer_model", H5T_STD_U8LE, header.info.model);
  header.checksum = header_crc(header, version);
  if (file.read_integer("crc32c") != header.checksum)
    throw_error(ExitCode::io, "{} is damaged (its header)", path);
  return header;
}

}  // namespace

struct TokenFileReader::Impl {
  H5File file;
  TokenFileHeader header;
  std::optional<CheckedArrayReader> tokens, ends, bits;
  std::vector<std::uint16_t> narrow;
  std::vector<std::uint8_t> packed;

  explicit Impl(const std::string& path) : file(H5File::open(path)), header(read_header(file)) {
    open_arrays();
  }
  Impl(const std::string& path, TokenFileHeader known)
      : file(H5File::open(path)), header(std::move(known)) {
    if (const index_t now = file.length_of(file.open_dataset("tokens")); now != header.info.tokens)
      throw_error(ExitCode::io, "{} has {} tokens, and had {} when the job started", path, now,
                  header.info.tokens);
    open_arrays();
  }
  void open_arrays() {
    const TokenFileInfo& info = header.info;
    tokens.emplace(file, ids_of(info.vocab), info.tokens, header.block_crcs);
    if (info.documents > 0)
      ends.emplace(file, document_ends(), info.documents, header.document_crcs);
    if (info.partial_loss)
      bits.emplace(file, loss_bits(), bytes_of_bits(info.tokens), header.loss_crcs);
  }
  void check_range(index_t first, index_t count) const {
    T3D_CHECK(first >= 0 && count >= 0 && first + count <= header.info.tokens, "tokens {}+{} of {}",
              first, count, header.info.tokens);
  }
};

namespace {

/// HDF5 reads by itself, and a handle of its own may be stale: all is opened anew.
template <class Open>
auto opened(const std::string& path, const Open& open) {
  for (Tries tries;;) {
    static_cast<void>(FileReader(path));  // says "does not exist" better than HDF5
    try {
      return open();
    } catch (const Error& error) {
      if (!error.refused() || !tries.again(EIO, path)) throw;
    }
  }
}

}  // namespace

TokenFileReader::TokenFileReader(const std::string& path)
    : impl_(opened(path, [&] { return std::make_unique<Impl>(path); })) {}

TokenFileReader::TokenFileReader(const std::string& path, TokenFileHeader header)
    : impl_(opened(path, [&] { return std::make_unique<Impl>(path, header); })) {}

TokenFileReader::~TokenFileReader() = default;

const TokenFileHeader& TokenFileReader::header() const { return impl_->header; }

void TokenFileReader::read(index_t first, index_t count, std::int32_t* out) {
  impl_->check_range(first, count);
  if (ids_of(info().vocab).bytes == 4) return impl_->tokens->read(first, count, out);
  impl_->narrow.resize(static_cast<std::size_t>(count));
  impl_->tokens->read(first, count, impl_->narrow.data());
  std::copy(impl_->narrow.begin(), impl_->narrow.end(), out);
}

void TokenFileReader::read_counts(index_t first, index_t count, std::uint8_t* out) {
  impl_->check_range(first, count);
  if (!info().partial_loss) {
    std::fill_n(out, count, std::uint8_t{1});
    return;
  }
  const index_t begin = first / 8, end = bytes_of_bits(first + count);
  impl_->packed.resize(static_cast<std::size_t>(end - begin));
  impl_->bits->read(begin, end - begin, impl_->packed.data());
  for (index_t n = 0; n < count; ++n) {
    const auto byte = static_cast<std::size_t>((first + n) / 8 - begin);
    out[n] = static_cast<std::uint8_t>((impl_->packed[byte] >> ((first + n) % 8)) & 1U);
  }
}

std::vector<index_t> TokenFileReader::read_document_ends(index_t first, index_t count) {
  T3D_CHECK(first >= 0 && count >= 0 && first + count <= info().documents, "documents {}+{} of {}",
            first, count, info().documents);
  std::vector<index_t> ends(static_cast<std::size_t>(count));
  if (count == 0) return ends;
  impl_->ends->read(first, count, ends.data());
  for (std::size_t n = 0; n < ends.size(); ++n)
    if (ends[n] <= (n == 0 ? 0 : ends[n - 1]) || ends[n] > info().tokens)
      throw_error(ExitCode::io, "{} is damaged (document {} ends at token {})", impl_->file.path(),
                  first + static_cast<index_t>(n) + 1, ends[n]);
  return ends;
}

void TokenFileReader::verify() {
  impl_->tokens->verify();
  if (impl_->bits) impl_->bits->verify();
  constexpr index_t kMany = index_t{1} << 16;
  for (index_t first = 0; first < info().documents; first += kMany)
    static_cast<void>(read_document_ends(first, std::min(kMany, info().documents - first)));
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
