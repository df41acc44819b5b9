// Token files without a library of their own: llm.c shards and plain ids. The first byte chooses
// the format that is asked for, the rest is the file.
#include <array>
#include <vector>

#include "data/token_formats.hpp"
#include "fuzz/fuzz.hpp"
#include "io/hdf5/token_file.hpp"

namespace {

void read_as(const std::string& path, t3d::TokenFormat format) {
  t3d::TokenCard card = t3d::read_token_card(path, format);
  const auto source = t3d::open_token_file(std::move(card));
  std::vector<std::int32_t> ids(static_cast<std::size_t>(source->size()));
  source->read(0, source->size(), ids.data());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using t3d::TokenFormat;
  constexpr std::array kFormats{TokenFormat::automatic, TokenFormat::llmc, TokenFormat::u16,
                                TokenFormat::u32, TokenFormat::bytes};
  if (bytes == 0) return 0;
  static const t3d::test::MemoryFile file;
  file.write(t3d::test::as_text(data + 1, bytes - 1));
  if (t3d::is_hdf5_file(file.path())) return 0;  // a library's parser, not ours
  t3d::test::expect_answer([&] { read_as(file.path(), kFormats[data[0] % kFormats.size()]); });
  return 0;
}
