// JSONL as `tokenize` reads it: lines out of a file, fields out of lines. The first byte chooses
// the fields and how long a line may be.
#include <vector>

#include "data/text/json_line.hpp"
#include "data/text/line_reader.hpp"
#include "fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  if (bytes == 0) return 0;
  static const t3d::test::MemoryFile file;
  file.write(t3d::test::as_text(data + 1, bytes - 1));
  const t3d::JsonFields fields =
      data[0] % 2 == 0 ? t3d::JsonFields{} : t3d::JsonFields{"", "p", "c"};
  t3d::LineReader lines(t3d::open_stream(file.path()), 0, 1 + (data[0] / 2) * 8);
  t3d::index_t next = 0;
  int parsed = 0;  // each bad line costs an exception, which is slow here
  while (const auto line = lines.next()) {
    if (line->offset < next) std::abort();
    next = line->offset + 1;
    if (line->too_long || ++parsed > 20) continue;
    t3d::test::expect_answer([&] { (void)t3d::parse_json_line(line->text, fields); });
  }
  return 0;
}
