// Files of Megatron and llm.c: written by us they are what these programs read, and we read theirs.
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/error.hpp"
#include "data/megatron_index.hpp"
#include "data/token_sink.hpp"
#include "data/token_source.hpp"
#include "io/posix_file.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"

using namespace t3d;
using t3d::test::contains;
using t3d::test::ScratchFolder;

namespace {

/// Bytes of little-endian numbers, as documented in data/megatron_index.hpp.
class Bytes {
 public:
  template <class Number>
  Bytes& add(Number number) {
    text_.append(reinterpret_cast<const char*>(&number), sizeof number);
    return *this;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_{"MMIDIDX\0\0", 9};
};

std::string small_index(std::uint8_t type, std::int64_t width) {
  return Bytes()
      .add(std::uint64_t{1})
      .add(type)
      .add(std::uint64_t{3})
      .add(std::uint64_t{3})
      .add(std::int32_t{2})
      .add(std::int32_t{0})
      .add(std::int32_t{3})
      .add(std::int64_t{0})
      .add(2 * width)
      .add(2 * width)
      .add(std::int64_t{0})
      .add(std::int64_t{2})
      .add(std::int64_t{3})
      .text();
}

void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

template <class Id>
std::string packed(const std::vector<Id>& ids) {
  return {reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(Id)};
}

std::vector<std::int32_t> ids_of(const std::vector<std::string>& names, TokenFormat format) {
  const auto source = make_token_source(names, format);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(source->size()));
  source->read(0, source->size(), ids.data());
  return ids;
}

void write_sink(TokenOutput output, const std::string& stem, index_t vocab) {
  TokenFileInfo info;
  info.vocab = vocab;
  const auto sink = make_token_sink(output, stem, info);
  const std::vector<std::int32_t> ids{5, 6, static_cast<std::int32_t>(vocab) - 1, 8, 9};
  sink->append(ids.data(), 2, true);
  sink->end_document();
  sink->append(ids.data() + 2, 3, true);
  sink->end_document();
  sink->finish();
}

}  // namespace

TEST_CASE("Megatron's pairs of files are read, by either name and by patterns") {
  const ScratchFolder folder("megatron");
  const std::string at = folder.path() + "/";
  write(at + "a.idx", small_index(8, 2));
  write(at + "a.bin", packed<std::uint16_t>({1, 2, 3, 60000, 5}));
  write(at + "b.idx", small_index(4, 4) + std::string(3, '\0'));  // with modes
  write(at + "b.bin", packed<std::int32_t>({1, 2, 3, 128000, 5}));
  const std::vector<std::int32_t> a{1, 2, 3, 60000, 5}, b{1, 2, 3, 128000, 5};
  for (const TokenFormat format : {TokenFormat::megatron, TokenFormat::automatic}) {
    CHECK(ids_of({at + "a.bin"}, format) == a);
    CHECK(ids_of({at + "a.idx"}, format) == a);
    CHECK(ids_of({at + "b*"}, format) == b);
  }
  const auto both = make_token_source({at + "*"}, TokenFormat::megatron);
  CHECK(both->size() == 10);
  CHECK_THAT(both->describe(), contains("a.bin: 5 tokens of 2 bytes, 2 documents"));
  CHECK(both->files()[0].checksum != 0);
  CHECK(both->files()[0].checksum != both->files()[1].checksum);
}

TEST_CASE("an index that is not whole or not sound is an error with its name") {
  const ScratchFolder folder("megatron_bad");
  const std::string at = folder.path() + "/", sound = small_index(8, 2);
  write(at + "a.bin", packed<std::uint16_t>({1, 2, 3, 4, 5}));
  const auto fault = [&](const std::string& index, ExitCode code) -> std::string {
    write(at + "a.idx", index);
    try {
      (void)ids_of({at + "a.bin"}, TokenFormat::megatron);
    } catch (const Error& error) {
      CHECK(error.code() == code);
      CHECK_THAT(error.what(), contains(at + "a."));
      return error.what();
    }
    return "accepted";
  };
  for (std::size_t size = 0; size < sound.size(); ++size)
    CHECK_THAT(fault(sound.substr(0, size), ExitCode::io), contains("a.idx"));
  const auto changed = [&](std::size_t place, char value) {
    std::string text = sound;
    text[place] = value;
    return text;
  };
  CHECK_THAT(fault(changed(0, 'N'), ExitCode::io), contains("no index of Megatron's"));
  CHECK_THAT(fault(changed(9, 2), ExitCode::io), contains("version 2"));
  CHECK_THAT(fault(changed(17, 5), ExitCode::config), contains("ids of type 5 are not read"));
  CHECK_THAT(fault(changed(25, '\x7f'), ExitCode::io), contains("do not hold"));
  CHECK_THAT(fault(changed(37, '\xff'), ExitCode::io), contains("length of -"));
  CHECK_THAT(fault(changed(54, 1), ExitCode::io), contains("sequence 1 begins at byte"));
  CHECK_THAT(fault(changed(78, 9), ExitCode::io), contains("begins with sequence 9 of 3"));
  CHECK(fault(sound, ExitCode::io) == "accepted");
  write(at + "a.bin", packed<std::uint16_t>({1, 2, 3, 4}));
  CHECK_THAT(fault(sound, ExitCode::io), contains("a.bin holds 4 tokens, its index says 5"));
  CHECK_THROWS_WITH(ids_of({at + "a.bin"}, TokenFormat::u16),
                    contains("megatron by its signature"));
  write(at + "x", "");
  CHECK_THROWS_WITH(ids_of({at + "x"}, TokenFormat::megatron), contains("neither .bin nor .idx"));
}

TEST_CASE("what is written for others is read back") {
  const ScratchFolder folder("sinks");
  const std::string at = folder.path() + "/";
  for (const index_t vocab : {50000, 70000}) {
    const std::vector<std::int32_t> ids{5, 6, static_cast<std::int32_t>(vocab) - 1, 8, 9};
    write_sink(TokenOutput::megatron, at + "m", vocab);
    CHECK(ids_of({at + "m.bin"}, TokenFormat::automatic) == ids);
    const MegatronIndex index = read_megatron_index(at + "m.idx");
    CHECK(index.sequences == 2);
    CHECK(index.documents == 2);
    CHECK(index.id_bytes == (vocab == 50000 ? 2 : 4));
    CHECK(file_size(at + "m.idx") == 34 + 2 * 12 + 3 * 8);
    write_sink(TokenOutput::llmc, at + "l", vocab);
    CHECK(ids_of({at + "l-000000.bin"}, TokenFormat::automatic) == ids);
  }
  TokenFileInfo info;
  info.vocab = 10;
  const std::int32_t id = 10;
  for (const TokenOutput output : {TokenOutput::hdf5, TokenOutput::megatron, TokenOutput::llmc})
    CHECK_THROWS_WITH(make_token_sink(output, at + "no", info)->append(&id, 1, true),
                      contains("outside the vocabulary of 10"));
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    CHECK(entry.path().string().find("no") == std::string::npos);
}
