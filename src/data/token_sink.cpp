#include "data/token_sink.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <vector>

#include "core/error.hpp"
#include "data/megatron_index.hpp"
#include "io/partial_file.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

/// A file of bytes that has its name when it is whole.
class RawFile {
 public:
  explicit RawFile(const std::string& path) : partial_(path), file_(std::fopen(name(), "wbx")) {
    check(file_ != nullptr);
  }
  void write(const void* data, index_t bytes) {
    const auto size = static_cast<std::size_t>(bytes);
    check(std::fwrite(data, 1, size, file_.get()) == size);
  }
  void write_at(index_t offset, const void* data, index_t bytes) {
    check(std::fseek(file_.get(), offset, SEEK_SET) == 0);
    write(data, bytes);
  }
  void finish() {
    check(std::fclose(file_.release()) == 0);
    partial_.publish();
  }
  [[nodiscard]] const std::string& path() const { return partial_.path(); }

 private:
  [[nodiscard]] const char* name() const { return partial_.name().c_str(); }
  void check(bool good) const {
    if (!good)
      throw_error(ExitCode::io, "cannot write {}: {}", partial_.path(), std::strerror(errno));
  }
  PartialFile partial_;
  std::unique_ptr<std::FILE, CloseFile> file_;
};

class TokenFileSink final : public TokenSink {
 public:
  TokenFileSink(const std::string& stem, const TokenFileInfo& info)
      : path_(stem + ".h5"), writer_(path_, info) {}
  void append(const std::int32_t* ids, index_t count, bool counts) override {
    writer_.append(ids, count, counts);
  }
  void end_document() override { writer_.end_document(); }
  void add_text_bytes(index_t bytes) override { writer_.add_text_bytes(bytes); }
  void finish() override { writer_.finish(); }
  const std::string& path() const override { return path_; }

 private:
  std::string path_;
  TokenFileWriter writer_;
};

/// Ids of 2 or 4 bytes, checked.
class PackedIds {
 public:
  PackedIds(index_t vocab, index_t bytes) : vocab_(vocab), bytes_(bytes) {}
  [[nodiscard]] index_t bytes() const { return bytes_; }
  void write(RawFile& file, const std::int32_t* ids, index_t count) {
    for (index_t n = 0; n < count; ++n)
      if (ids[n] < 0 || ids[n] >= vocab_)
        throw_error(ExitCode::config, "{}: token {} is outside the vocabulary of {}", file.path(),
                    ids[n], vocab_);
    if (bytes_ == 4) return file.write(ids, count * 4);
    narrow_.assign(ids, ids + count);
    file.write(narrow_.data(), count * 2);
  }

 private:
  index_t vocab_ = 0, bytes_ = 2;
  std::vector<std::uint16_t> narrow_;
};

class MegatronSink final : public TokenSink {
 public:
  MegatronSink(const std::string& stem, index_t vocab)
      : data_(stem + ".bin"), index_(stem + ".idx"), ids_(vocab, vocab < 65500 ? 2 : 4) {}
  void append(const std::int32_t* ids, index_t count, bool) override {
    ids_.write(data_, ids, count);
    open_ += count;
  }
  void end_document() override {
    if (open_ == 0) return;
    if (open_ > std::numeric_limits<std::int32_t>::max())
      throw_error(ExitCode::config, "{}: a document of {} tokens; this format takes 2^31 - 1",
                  data_.path(), open_);
    sizes_.push_back(static_cast<std::int32_t>(std::exchange(open_, 0)));
  }
  void add_text_bytes(index_t) override {}
  void finish() override {
    end_document();
    data_.finish();
    write_megatron_index(sizes_, ids_.bytes(),
                         [&](const void* data, index_t bytes) { index_.write(data, bytes); });
    index_.finish();
  }
  const std::string& path() const override { return data_.path(); }

 private:
  RawFile data_, index_;
  PackedIds ids_;
  index_t open_ = 0;  // tokens of the open document
  std::vector<std::int32_t> sizes_;
};

/// Shards of 10^8 tokens behind a header of 256 int32.
class LlmcSink final : public TokenSink {
 public:
  LlmcSink(std::string stem, index_t vocab)
      : stem_(std::move(stem)), ids_(vocab, vocab <= 65536 ? 2 : 4) {
    open();
    first_ = shard_->path();
  }
  void append(const std::int32_t* ids, index_t count, bool) override {
    while (count > 0) {
      if (tokens_ == kShardTokens) {
        close();
        open();
      }
      const index_t now = std::min(count, kShardTokens - tokens_);
      ids_.write(*shard_, ids, now);
      tokens_ += now;
      ids += now;
      count -= now;
    }
  }
  void end_document() override {}
  void add_text_bytes(index_t) override {}
  void finish() override { close(); }
  const std::string& path() const override { return first_; }

 private:
  static constexpr index_t kShardTokens = 100'000'000;
  void open() {
    shard_ = std::make_unique<RawFile>(fmt::format("{}-{:06d}.bin", stem_, shards_++));
    const std::array<std::int32_t, 256> header{};
    shard_->write(header.data(), sizeof header);
    tokens_ = 0;
  }
  void close() {
    const bool wide = ids_.bytes() == 4;
    const std::array<std::int32_t, 3> header{wide ? 20240801 : 20240520, wide ? 7 : 1,
                                             static_cast<std::int32_t>(tokens_)};
    shard_->write_at(0, header.data(), sizeof header);
    shard_->finish();
  }

  std::string stem_, first_;
  PackedIds ids_;
  std::unique_ptr<RawFile> shard_;
  index_t tokens_ = 0, shards_ = 0;
};

}  // namespace

std::unique_ptr<TokenSink> make_token_sink(TokenOutput output, const std::string& stem,
                                           const TokenFileInfo& info) {
  switch (output) {
    case TokenOutput::megatron: return std::make_unique<MegatronSink>(stem, info.vocab);
    case TokenOutput::llmc: return std::make_unique<LlmcSink>(stem, info.vocab);
    case TokenOutput::hdf5: break;
  }
  return std::make_unique<TokenFileSink>(stem, info);
}

}  // namespace t3d
