#include "io/hdf5/token_file.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <numeric>
#include <random>
#include <thread>

#include "core/error.hpp"
#include "support/catch.hpp"
#include "support/h5_damage.hpp"
#include "support/scratch_folder.hpp"

using namespace t3d;
using t3d::test::ScratchFolder;

namespace {

std::vector<std::int32_t> some_ids(index_t count, index_t vocab) {
  std::mt19937 random(3);
  std::vector<std::int32_t> ids;
  for (index_t n = 0; n < count; ++n)
    ids.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(vocab)));
  return ids;
}

void write(const std::string& path, index_t vocab, const std::vector<std::int32_t>& ids) {
  TokenFileWriter writer(path,
                         {vocab, "sentencepiece", std::string("\0model\xff\0", 8), "a.txt", 7, 0});
  for (std::size_t at = 0; at < ids.size();) {  // in uneven portions
    const std::size_t now = std::min(ids.size() - at, at / 2 + 1);
    writer.append(ids.data() + at, static_cast<index_t>(now));
    at += now;
  }
  writer.add_text_bytes(100);
  writer.finish();
}

ExitCode code_of_reading(const std::string& path) {
  try {
    TokenFileReader(path).verify();
  } catch (const Error& error) {
    return error.code();
  }
  return ExitCode::done;
}

}  // namespace

TEST_CASE("of two writers of one path, each publishes a whole file") {
  const ScratchFolder folder("token_file");
  const std::string path = folder.path() + "/tokens.h5";
  const auto ids = some_ids(1000, 256);
  TokenFileWriter first(path, {256, "bytes", "", "a.txt", 7, 0});
  first.append(ids.data(), 1000);
  TokenFileWriter second(path, {256, "bytes", "", "a.txt", 7, 0});
  second.append(ids.data(), 500);
  first.finish();
  CHECK(code_of_reading(path) == ExitCode::done);
  CHECK(TokenFileReader(path).info().tokens == 1000);
  second.finish();
  CHECK(TokenFileReader(path).info().tokens == 500);
}

TEST_CASE("token files give back what was written, by any range") {
  const ScratchFolder folder("token_file");
  for (const index_t vocab : {256, 65536, 65537, 200000}) {
    for (const index_t count : {0, 1, 1000, 1200000}) {
      const std::string path = folder.path() + "/sub/tokens.h5";
      const auto ids = some_ids(count, vocab);
      write(path, vocab, ids);
      const std::filesystem::directory_iterator files(folder.path() + "/sub");
      CHECK(std::distance(begin(files), end(files)) == 1);
      TokenFileReader reader(path);
      CHECK(reader.info().tokens == count);
      CHECK(reader.info().vocab == vocab);
      CHECK(reader.info().model == std::string("\0model\xff\0", 8));
      CHECK(reader.info().text_bytes == 107);
      std::vector<std::int32_t> again(ids.size());
      reader.read(count / 2, count - count / 2, again.data() + count / 2);
      reader.read(0, count / 2, again.data());
      CHECK(again == ids);
      CHECK(is_hdf5_file(path));
    }
  }
}

TEST_CASE("damage to a token file is seen") {
  const ScratchFolder folder("token_damage");
  const std::string path = folder.path() + "/tokens.h5";
  const auto ids = some_ids(1 << 20, 50000);
  write(path, 50000, ids);
  std::ifstream file(path, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(file), {}};
  std::mt19937 random(5);
  int seen = 0;
  for (int trial = 0; trial < 60; ++trial) {
    std::string bytes = whole;
    const std::size_t place = random() % bytes.size();
    bytes[place] = static_cast<char>(bytes[place] ^ (1 << (random() % 8)));
    std::ofstream(path, std::ios::binary) << bytes;
    const ExitCode code = code_of_reading(path);
    seen += code == ExitCode::io;
    if (code == ExitCode::done) {  // then the flip was in what nobody reads
      std::vector<std::int32_t> again(ids.size());
      TokenFileReader(path).read(0, 1 << 20, again.data());
      CHECK(again == ids);
    }
  }
  CHECK(seen > 50);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{100}, whole.size() / 2, whole.size() - 1}) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << whole.substr(0, size);
    CHECK(code_of_reading(path) == ExitCode::io);
  }
  CHECK(code_of_reading(folder.path() + "/none.h5") == ExitCode::no_input);
}

TEST_CASE("a token file that changes while it is read is an error, and no zeros") {
  const ScratchFolder folder("token_change");
  const std::string path = folder.path() + "/tokens.h5";
  const auto ids = some_ids(1 << 20, 50000);
  const auto reads = [&](const std::function<void()>& change) {
    write(path, 50000, ids);
    TokenFileReader reader(path);
    std::vector<std::int32_t> read(ids.size());
    reader.read(0, 1 << 20, read.data());
    CHECK(read == ids);
    change();
    std::this_thread::sleep_for(std::chrono::milliseconds(150));  // looked at ten times a second
    reader.read(0, 1 << 20, read.data());
    return read == ids;
  };
  CHECK_THROWS_WITH(reads([&] { std::filesystem::resize_file(path, 4096); }),
                    t3d::test::contains("was changed while it is read"));
  CHECK_THROWS_WITH(reads([&] {
                      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
                      file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(path) / 2));
                      file << std::string(1 << 19, '\0');
                    }),
                    t3d::test::contains("was changed while it is read"));
  // A time alone changes nothing of what is read.
  CHECK(reads([&] {
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now());
  }));
}

TEST_CASE("ids outside the vocabulary are refused, and no half file stays") {
  const ScratchFolder folder("token_range");
  {
    TokenFileWriter writer(folder.path() + "/t.h5", {10, "bytes", "", "", 0, 0});
    const std::int32_t id = 10;
    CHECK_THROWS_WITH(writer.append(&id, 1), t3d::test::contains("outside the vocabulary of 10"));
  }
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("documents, special ids and what counts as a target come back") {
  const ScratchFolder folder("token_parts");
  const std::string path = folder.path() + "/t.h5";
  std::mt19937 random(9);
  // A first 0 behind more than a block of ones, in the first byte, or nowhere.
  for (const index_t ones : {index_t{0}, index_t{3}, index_t{9000000}, index_t{-1}}) {
    CAPTURE(ones);
    std::vector<std::uint8_t> counts;
    std::vector<index_t> ends;
    {
      TokenFileInfo info;
      info.special = {1, 2, -1, 0};
      TokenFileWriter writer(path, info);
      const std::vector<std::int32_t> ids = some_ids(5000, 256);
      const auto add = [&](index_t count, bool value) {
        for (index_t left = count; left > 0; left -= 5000)
          writer.append(ids.data(), std::min<index_t>(left, 5000), value);
        counts.insert(counts.end(), static_cast<std::size_t>(count), value ? 1 : 0);
      };
      if (ones > 0) add(ones, true);
      writer.end_document();
      if (ones > 0) ends.push_back(ones);
      for (int n = 0; n < 300; ++n) {
        add(static_cast<index_t>(random() % 40), ones < 0 || random() % 2 == 0);
        writer.end_document();
        writer.end_document();  // an empty document is none
        if (const index_t now = std::ssize(counts); ends.empty() || ends.back() < now)
          ends.push_back(now);
      }
      add(11, true);  // of a document that goes on elsewhere
      CHECK(writer.tokens() == std::ssize(counts));
      writer.finish();
    }
    TokenFileReader reader(path);
    CHECK_NOTHROW(reader.verify());
    CHECK(reader.info().special == SpecialIds{1, 2, -1, 0});
    CHECK(reader.info().partial_loss == (ones >= 0));
    REQUIRE(reader.info().documents == std::ssize(ends));
    CHECK(reader.read_document_ends(0, std::ssize(ends)) == ends);
    CHECK(reader.read_document_ends(7, 2) ==
          std::vector<index_t>(ends.begin() + 7, ends.begin() + 9));
    std::vector<std::uint8_t> again(counts.size());
    reader.read_counts(0, std::ssize(counts), again.data());
    CHECK(again == counts);
    for (int n = 0; n < 100; ++n) {
      const index_t first = static_cast<index_t>(random() % counts.size());
      const index_t count =
          std::min(std::ssize(counts) - first, static_cast<index_t>(random() % 50));
      reader.read_counts(first, count, again.data());
      CHECK(std::equal(again.begin(), again.begin() + count, counts.begin() + first));
    }
  }
}

TEST_CASE("damage to documents and loss bits is seen") {
  const ScratchFolder folder("token_parts_damage");
  const std::string path = folder.path() + "/t.h5";
  const auto ids = some_ids(100, 256);
  {
    TokenFileWriter writer(path, {});
    for (int n = 0; n < 500; ++n) {
      writer.append(ids.data(), 100, n % 2 == 0);
      writer.end_document();
    }
    writer.finish();
  }
  for (const char* name :
       {"document_ends", "loss_bits", "document_ends_crc32c", "loss_bits_crc32c"}) {
    CAPTURE(name);
    const std::string copy = folder.path() + "/copy.h5";
    std::filesystem::copy_file(path, copy, std::filesystem::copy_options::overwrite_existing);
    t3d::test::change_first_byte(copy, name);
    CHECK(code_of_reading(copy) == ExitCode::io);
  }
}

TEST_CASE("several ends of a text and its begin are kept") {
  const ScratchFolder folder("token_ends");
  const auto ids = some_ids(100, 256);
  for (const SpecialIds& special :
       {SpecialIds{1, 2, -1, 0, {2, 250}, false}, SpecialIds{1, 2, -1, 0, {}, true},
        SpecialIds{-1, 2, -1, 0, {7, 8}}}) {
    const std::string path = folder.path() + "/t.h5";
    TokenFileInfo info;
    info.special = special;
    TokenFileWriter writer(path, info);
    writer.append(ids.data(), 100);
    writer.finish();
    TokenFileReader reader(path);
    CHECK(reader.info().special == special);
  }
}

TEST_CASE("files of version 1 are read") {
  TokenFileReader reader(T3D_TEST_SOURCE "/reference/tokens_format1.h5");
  CHECK_NOTHROW(reader.verify());
  const TokenFileInfo& info = reader.info();
  CHECK(info.tokens == 2574);
  CHECK(info.vocab == 340);
  CHECK(info.tokenizer == "sentencepiece");
  CHECK(info.model.size() == 5321);
  CHECK(info.text_bytes == 3000);
  CHECK(info.documents == 0);
  CHECK(info.special == SpecialIds{});
  CHECK(!info.partial_loss);
  std::vector<std::uint8_t> counts(2574);
  reader.read_counts(0, 2574, counts.data());
  CHECK(std::count(counts.begin(), counts.end(), 1) == 2574);
}
