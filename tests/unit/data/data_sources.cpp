#include <cstring>
#include <fstream>
#include <numeric>

#include "core/error.hpp"
#include "data/batch_source.hpp"
#include "data/corpus.hpp"
#include "data/token_source.hpp"
#include "io/hdf5/token_file.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"

using namespace t3d;
using t3d::test::ScratchFolder;

namespace {

template <class Id>
void write_flat(const std::string& path, const std::vector<std::int32_t>& header,
                const std::vector<Id>& ids) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(header.data()), std::ssize(header) * 4);
  file.write(reinterpret_cast<const char*>(ids.data()),
             std::ssize(ids) * static_cast<std::ptrdiff_t>(sizeof(Id)));
}

std::vector<std::int32_t> llmc_header(std::int32_t magic, std::int32_t version,
                                      std::int32_t tokens) {
  std::vector<std::int32_t> header(256);
  header[0] = magic;
  header[1] = version;
  header[2] = tokens;
  return header;
}

std::vector<std::int32_t> read_all(TokenSource& source) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(source.size()));
  source.read(0, source.size(), ids.data());
  return ids;
}

ExitCode code_of(const std::vector<std::string>& paths, TokenFormat format, index_t vocab = 0) {
  try {
    read_all(*make_token_source(paths, format, vocab));
  } catch (const Error& error) {
    UNSCOPED_INFO(error.what());
    return error.code();
  }
  return ExitCode::done;
}

}  // namespace

TEST_CASE("every format reads as what it holds, and files join in sorted order") {
  const ScratchFolder folder("formats");
  const std::string at = folder.path() + "/";
  write_flat<std::uint16_t>(at + "a1.bin", llmc_header(20240520, 1, 3), {1, 50256, 3});
  write_flat<std::uint32_t>(at + "a2.bin", llmc_header(20240801, 7, 2), {128000, 5});
  write_flat<std::uint16_t>(at + "raw16", {}, {7, 65535});
  write_flat<std::uint32_t>(at + "raw32", {}, {7, 100000});
  std::ofstream(at + "t.txt") << "hi\n";
  CHECK(read_all(*make_token_source({at + "a*.bin"})) ==
        std::vector<std::int32_t>{1, 50256, 3, 128000, 5});
  CHECK(read_all(*make_token_source({at + "a2.bin", at + "a1.bin"}, TokenFormat::llmc)) ==
        std::vector<std::int32_t>{128000, 5, 1, 50256, 3});
  CHECK(read_all(*make_token_source({at + "raw16"}, TokenFormat::u16)) ==
        std::vector<std::int32_t>{7, 65535});
  CHECK(read_all(*make_token_source({at + "raw32"}, TokenFormat::u32)) ==
        std::vector<std::int32_t>{7, 100000});
  const auto text = make_token_source({at + "t.txt"});
  CHECK(read_all(*text) == std::vector<std::int32_t>{'h', 'i', '\n'});
  CHECK(text->vocab() == 256);
  CHECK(text->bytes_per_token() == 1.0);
}

TEST_CASE("what is wrong with a corpus is said with the right code") {
  const ScratchFolder folder("wrong");
  const std::string at = folder.path() + "/";
  write_flat<std::uint16_t>(at + "short.bin", llmc_header(20240520, 1, 4), {1, 2, 3});
  write_flat<std::uint16_t>(at + "version.bin", llmc_header(20240520, 2, 3), {1, 2, 3});
  write_flat<std::uint16_t>(at + "odd", {}, {1});
  std::ofstream(at + "odd", std::ios::app) << "x";
  write_flat<std::uint16_t>(at + "good", {}, {1, 2, 300});
  std::ofstream(at + "negative") << "\xff\xff\xff\xff";
  CHECK(code_of({at + "none*"}, TokenFormat::automatic) == ExitCode::no_input);
  CHECK(code_of({at + "none"}, TokenFormat::u16) == ExitCode::no_input);
  CHECK(code_of({at + "short.bin"}, TokenFormat::automatic) == ExitCode::io);
  CHECK(code_of({at + "version.bin"}, TokenFormat::automatic) == ExitCode::io);
  CHECK(code_of({at + "good"}, TokenFormat::llmc) == ExitCode::io);
  CHECK(code_of({at + "good"}, TokenFormat::hdf5) == ExitCode::io);
  CHECK(code_of({at + "odd"}, TokenFormat::u16) == ExitCode::io);
  CHECK(code_of({at + "good"}, TokenFormat::automatic) == ExitCode::config);
  CHECK(code_of({at + "good"}, TokenFormat::u16, 300) == ExitCode::config);
  CHECK(code_of({at + "good"}, TokenFormat::u16, 301) == ExitCode::done);
  CHECK(code_of({at + "negative"}, TokenFormat::u32) == ExitCode::config);
  CHECK(code_of({at + "good"}, TokenFormat::bytes, 100) == ExitCode::config);
  CHECK(code_of({}, TokenFormat::automatic) == ExitCode::config);
}

TEST_CASE("a file's signature contradicts another format") {
  const ScratchFolder folder("signature");
  const std::string at = folder.path() + "/";
  const std::vector<std::int32_t> ids{1, 2, 3};
  {
    TokenFileWriter writer(at + "tokens.h5", {256, "bytes", "", "", 0, 0});
    writer.append(ids.data(), 3);
    writer.finish();
  }
  write_flat<std::uint16_t>(at + "shard.bin", llmc_header(20240520, 1, 4), {1, 2, 3, 4});
  for (const TokenFormat format :
       {TokenFormat::llmc, TokenFormat::u16, TokenFormat::u32, TokenFormat::bytes}) {
    CAPTURE(format);
    CHECK_THROWS_WITH(make_token_source({at + "tokens.h5"}, format),
                      t3d::test::contains(fmt::format("hdf5 by its signature, but data.format = "
                                                      "\"{}\"",
                                                      format)));
    CHECK(code_of({at + "tokens.h5"}, format) == ExitCode::config);
  }
  for (const TokenFormat format :
       {TokenFormat::hdf5, TokenFormat::u16, TokenFormat::u32, TokenFormat::bytes})
    CHECK(code_of({at + "shard.bin"}, format) == ExitCode::config);
  CHECK(code_of({at + "tokens.h5"}, TokenFormat::hdf5) == ExitCode::done);
  CHECK(code_of({at + "shard.bin"}, TokenFormat::llmc) == ExitCode::done);
}

TEST_CASE("every source says whose ids it has, where its format knows") {
  const ScratchFolder folder("identity");
  const std::string at = folder.path() + "/";
  const auto token_file = [&](const std::string& name, const std::string& kind,
                              const std::string& model) {
    TokenFileWriter writer(at + name, {256, kind, model, "", 0, 0});
    const std::int32_t id = 7;
    writer.append(&id, 1);
    writer.finish();
    return make_token_source({at + name})->tokenizer_hash();
  };
  std::ofstream(at + "t.txt") << "hi\n";
  write_flat<std::uint16_t>(at + "ids", {}, {7, 8});
  const std::uint64_t bytes = token_file("bytes.h5", "bytes", "");
  CHECK(bytes != 0);
  CHECK(bytes == make_token_source({at + "t.txt"})->tokenizer_hash());
  const std::uint64_t model = token_file("a.h5", "sentencepiece", "a");
  CHECK(model != 0);
  CHECK(model != bytes);
  CHECK(model == token_file("again.h5", "sentencepiece", "a"));
  CHECK(model != token_file("b.h5", "sentencepiece", "b"));
  CHECK(token_file("unknown.h5", "unknown", "") == 0);
  CHECK(make_token_source({at + "ids"}, TokenFormat::u16)->tokenizer_hash() == 0);
  // Files of one source must agree, also with what does not say.
  CHECK(code_of({at + "a.h5", at + "again.h5"}, TokenFormat::automatic) == ExitCode::done);
  for (const char* other : {"b.h5", "bytes.h5", "unknown.h5", "t.txt"})
    CHECK(code_of({at + "a.h5", at + other}, TokenFormat::automatic) == ExitCode::config);
}

TEST_CASE("ranges across files") {
  const ScratchFolder folder("ranges");
  std::vector<std::string> paths;
  std::int32_t next = 0;
  for (const int count : {3, 0, 1, 5}) {
    paths.push_back(folder.path() + "/" + std::to_string(paths.size()));
    std::vector<std::uint16_t> ids;
    for (int n = 0; n < count; ++n) ids.push_back(static_cast<std::uint16_t>(next++));
    write_flat(paths.back(), {}, ids);
  }
  const auto source = make_token_source(paths, TokenFormat::u16);
  REQUIRE(source->size() == 9);
  for (index_t first = 0; first <= 9; ++first)
    for (index_t count = 0; first + count <= 9; ++count) {
      std::vector<std::int32_t> out(static_cast<std::size_t>(count)), expected(out.size());
      std::iota(expected.begin(), expected.end(), static_cast<std::int32_t>(first));
      source->read(first, count, out.data());
      CHECK(out == expected);
    }
}

TEST_CASE("batches are the same text however they are dealt to replicas") {
  std::vector<std::int32_t> ids(1000);
  std::iota(ids.begin(), ids.end(), 0);
  const auto batch = [&](index_t position, index_t count) {
    BatchSource source(make_memory_source(ids, 1000), 7, 42, true);
    std::vector<std::int32_t> in(static_cast<std::size_t>(count * 7)), out(in.size());
    source.read(position, count, in.data(), out.data());
    for (std::size_t n = 0; n < in.size(); ++n) REQUIRE(out[n] == in[n] + 1);
    return in;
  };
  const index_t global = 12, step = 30;  // beyond the first epoch too
  const auto whole = batch(step * global, global);
  for (const index_t replicas : {1, 2, 3, 4, 6, 12}) {
    std::vector<std::int32_t> joined;
    const index_t share = global / replicas;
    for (index_t d = 0; d < replicas; ++d) {
      const auto part = batch(step * global + d * share, share);
      joined.insert(joined.end(), part.begin(), part.end());
    }
    CHECK(joined == whole);
  }
  CHECK_THROWS_WITH(BatchSource(make_memory_source({1, 2, 3}, 9), 3, 1, true),
                    t3d::test::contains("3 tokens"));
}

TEST_CASE("tokens that do not count are no targets, in every file and beside the ignored id") {
  const ScratchFolder folder("loss");
  const auto file = [&](const std::string& name, index_t tokens, index_t every) {
    TokenFileWriter writer(folder.path() + "/" + name, {});
    for (std::int32_t id = 0; id < tokens; ++id)
      writer.append(&id, 1, every == 0 || id % every != 0);
    writer.finish();
  };
  file("a.h5", 20, 3);
  file("b.h5", 25, 0);
  const auto tokens = make_token_source({folder.path() + "/*.h5"});
  for (const std::int32_t ignored : {-1, 8}) {
    BatchSource source(tokens, 4, 1, true, ignored);
    CHECK(source.ignores());
    REQUIRE(source.samples() == 11);
    for (index_t n = 0; n < 11; ++n) {
      std::vector<std::int32_t> ids(4), targets(4), expected;
      source.read(n, 1, ids.data(), targets.data());
      const index_t first = source.parts()[0].ledger.first_token(n) + 1;
      for (index_t at = first; at < first + 4; ++at) {
        const auto id = static_cast<std::int32_t>(at < 20 ? at : at - 20);
        expected.push_back((at < 20 && id % 3 == 0) || id == ignored ? -1 : id);
      }
      CHECK(targets == expected);
      CHECK(source.targets(n, 1) == 4 - std::count(expected.begin(), expected.end(), -1));
    }
  }
  BatchSource all(make_token_source({folder.path() + "/b.h5"}), 4, 1, true);
  CHECK(!all.ignores());
  CHECK(all.targets(0, 6) == 24);
}

TEST_CASE("texts are cut behind lines, else between characters") {
  CHECK(clean_cut("ab\ncd") == 3);
  CHECK(clean_cut("abcd") == 4);
  CHECK(clean_cut("ab\xC3") == 2);
  CHECK(clean_cut("ab\xC3\xA9") == 4);
  CHECK(clean_cut("a\xF0\x9F\x98") == 1);
  CHECK(clean_cut("\xF0\x9F\x98\x80") == 4);
}
