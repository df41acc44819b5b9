#include <optional>

#include "core/error.hpp"
#include "io/crc32c.hpp"
#include "io/hdf5/token_file_header.hpp"
#include "io/partial_file.hpp"

namespace t3d {
namespace token_file {

std::uint32_t header_crc(const TokenFileHeader& header, std::int64_t version) {
  const TokenFileInfo& info = header.info;
  std::string text = fmt::format("{}\n{}\n{}\n{}\n{}\n", info.vocab, info.tokenizer, info.source,
                                 info.text_bytes, info.tokens);
  if (version > 1) {
    text += fmt::format("{}\n{}\n", info.documents, info.partial_loss ? 1 : 0);
    for (const auto& [name, id] : named_ids(info.special)) text += fmt::format("{}\n", *id);
  }
  if (version > 2)
    text += fmt::format("{}\n{}\n", text_of_ends(info.special), number_of_adds_bos(info.special));
  std::uint32_t crc = crc32c(info.model, crc32c(text));
  for (const auto& [name, table] : crc_tables(header))
    crc = crc32c(table->data(), table->size() * sizeof(std::uint32_t), crc);
  return crc;
}

namespace {

/// Bits that are written only from the first 0 on.
class LossBits {
 public:
  explicit LossBits(const H5File& file) : file_(file) {}
  void append(index_t count, bool value) {
    if (value && !array_) {
      ones_ += count;
      return;
    }
    if (!array_) {
      array_.emplace(file_, loss_bits());
      for (index_t left = std::exchange(ones_, 0); left > 0;) {
        const index_t now = std::min(left, kCrcBlockBytes);
        put(now, true);
        left -= now;
      }
    }
    put(count, value);
  }
  [[nodiscard]] bool any_zero() const { return array_.has_value(); }
  [[nodiscard]] std::vector<std::uint32_t> finish() {
    if (!array_) return {};
    if (filled_ > 0) array_->append(&open_, 1);
    return array_->finish();
  }

 private:
  void put(index_t count, bool value) {
    for (; count > 0 && filled_ > 0; --count) put_bit(value);
    const std::vector<std::uint8_t> whole(static_cast<std::size_t>(count / 8), value ? 0xFF : 0);
    array_->append(whole.data(), std::ssize(whole));
    for (count %= 8; count > 0; --count) put_bit(value);
  }
  void put_bit(bool value) {
    open_ = static_cast<std::uint8_t>(open_ | (value ? 1U << filled_ : 0U));
    if (++filled_ < 8) return;
    array_->append(&open_, 1);
    open_ = 0;
    filled_ = 0;
  }

  const H5File& file_;
  std::optional<CheckedArrayWriter> array_;
  index_t ones_ = 0;  // before there is an array
  std::uint8_t open_ = 0;
  unsigned filled_ = 0;  // bits in open_
};

}  // namespace
}  // namespace token_file

using namespace token_file;

struct TokenFileWriter::Impl {
  PartialFile partial;
  TokenFileHeader header;
  H5File file;
  CheckedArrayWriter tokens;
  std::optional<CheckedArrayWriter> ends;
  index_t last_end = 0;
  LossBits bits;
  std::vector<std::uint16_t> narrow;

  Impl(std::string path, TokenFileInfo info)
      : partial(std::move(path)),
        header{std::move(info), {}, {}, {}, 0},
        file(H5File::create(partial.name())),
        tokens(file, ids_of(header.info.vocab)),
        bits(file) {
    header.info.tokens = 0;
    header.info.documents = 0;
  }
  void write_header() {
    const TokenFileInfo& info = header.info;
    file.write_attribute("format", std::string(kFormat));
    const std::int64_t version = version_for(info.special);
    file.write_attribute("version", version);
    file.write_attribute("vocab", std::int64_t{info.vocab});
    file.write_attribute("tokenizer", info.tokenizer);
    file.write_attribute("source", info.source);
    file.write_attribute("text_bytes", std::int64_t{info.text_bytes});
    file.write_attribute("documents", std::int64_t{info.documents});
    for (const auto& [name, id] : named_ids(info.special))
      file.write_attribute(name, std::int64_t{*id});
    if (version > 2) {
      file.write_attribute(kEnds, text_of_ends(info.special));
      file.write_attribute(kAddsBos, number_of_adds_bos(info.special));
    }
    if (!info.unicode.empty()) file.write_attribute(kUnicode, info.unicode);
    file.write_attribute("crc32c", std::int64_t{header_crc(header, version)});
    for (const auto& [name, table] : crc_tables(header))
      write_values(name, H5T_STD_U32LE, std::ssize(*table), table->data());
    write_values("tokenizer_model", H5T_STD_U8LE, std::ssize(info.model), info.model.data());
  }
  void write_values(const std::string& name, hid_t type, index_t count, const void* data) const {
    if (count == 0) return;
    H5Id dataset = file.create_contiguous(name, type, 1, count, true);
    file.write_rows(dataset, type, 0, 1, count, true, data);
    dataset.close();
  }
};

TokenFileWriter::TokenFileWriter(std::string path, TokenFileInfo info)
    : impl_(std::make_unique<Impl>(std::move(path), std::move(info))) {}

TokenFileWriter::~TokenFileWriter() = default;

void TokenFileWriter::append(const std::int32_t* ids, index_t count, bool counts) {
  TokenFileInfo& info = impl_->header.info;
  for (index_t n = 0; n < count; ++n)
    if (ids[n] < 0 || ids[n] >= info.vocab)
      throw_error(ExitCode::config, "{}: token {} is outside the vocabulary of {}",
                  impl_->partial.path(), ids[n], info.vocab);
  if (ids_of(info.vocab).bytes == 2) {  // little-endian hosts only
    impl_->narrow.assign(ids, ids + count);
    impl_->tokens.append(impl_->narrow.data(), count);
  } else {
    impl_->tokens.append(ids, count);
  }
  impl_->bits.append(count, counts);
  info.tokens += count;
}

void TokenFileWriter::end_document() {
  TokenFileInfo& info = impl_->header.info;
  if (info.tokens == impl_->last_end) return;
  if (!impl_->ends) impl_->ends.emplace(impl_->file, document_ends());
  impl_->last_end = info.tokens;
  const auto end = static_cast<std::uint64_t>(info.tokens);
  impl_->ends->append(&end, 1);
  ++info.documents;
}

void TokenFileWriter::add_text_bytes(index_t bytes) { impl_->header.info.text_bytes += bytes; }

void TokenFileWriter::set_source(std::string source) {
  impl_->header.info.source = std::move(source);
}

index_t TokenFileWriter::tokens() const { return impl_->header.info.tokens; }

void TokenFileWriter::finish() {
  TokenFileHeader& header = impl_->header;
  header.block_crcs = impl_->tokens.finish();
  if (impl_->ends) header.document_crcs = impl_->ends->finish();
  header.info.partial_loss = impl_->bits.any_zero();
  header.loss_crcs = impl_->bits.finish();
  impl_->write_header();
  impl_->file.close();
  impl_->partial.publish();
}

}  // namespace t3d
