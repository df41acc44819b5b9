// Megatron's index of a token file. What is accepted belongs to a file of tokens that can be read.
#include "data/megatron_index.hpp"

#include <vector>

#include "fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  static const t3d::test::MemoryFile file;
  file.write(t3d::test::as_text(data, bytes));
  t3d::test::expect_answer([&] {
    const t3d::MegatronIndex index = t3d::read_megatron_index(file.path());
    if (index.tokens < 0 || index.sequences < 0 || index.documents < 0 ||
        (index.id_bytes != 2 && index.id_bytes != 4))
      std::abort();
  });
  return 0;
}
