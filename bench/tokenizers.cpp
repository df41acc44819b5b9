// Ids, texts and speed of one tokenizer, for bench/tokenizers_reference.py to compare with those of
// the programs that tokenizers come from.
//
//   t3d_bench_tokenizers MODEL TEXT OUT [REPEATS]
//
// Writes OUT.ids (int32), OUT.document (int32, with what the tokenizer puts around a text),
// OUT.text and OUT.shown (decoded without and with special ids), and prints the seconds of
// processor time of each encoding of the whole text, a new tokenizer each time.
#include <fmt/format.h>

#include <ctime>
#include <fstream>
#include <string>

#include "core/error.hpp"
#include "io/posix_file.hpp"
#include "tokenizer/tokenizer.hpp"

using namespace t3d;

namespace {

void write(const std::string& path, const void* data, std::size_t bytes) {
  std::ofstream(path, std::ios::binary)
      .write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
}

void run(const std::string& model, const std::string& text_path, const std::string& out,
         int repeats) {
  const std::string text = read_text_file(text_path);
  const auto tokenizer = load_tokenizer(model);
  const auto ids = tokenizer->encode(text);
  const auto document = tokenizer->encode_document(text);
  write(out + ".ids", ids.data(), ids.size() * sizeof(ids[0]));
  write(out + ".document", document.data(), document.size() * sizeof(ids[0]));
  const std::string plain = tokenizer->decode(document);
  const std::string shown = tokenizer->decode(document, Specials::show);
  write(out + ".text", plain.data(), plain.size());
  write(out + ".shown", shown.data(), shown.size());
  for (int n = 0; n < repeats; ++n) {
    const auto fresh = load_tokenizer(model);
    const std::clock_t begin = std::clock();
    const auto again = fresh->encode(text);
    const auto spent = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    fmt::print("{}{:.4f}", n == 0 ? "" : " ", spent);
    if (again != ids) throw_error(ExitCode::internal, "not the same ids twice");
  }
  fmt::print("\n");
}

}  // namespace

int main(int count, char** words) {
  if (count < 4) {
    fmt::print(stderr, "usage: t3d_bench_tokenizers MODEL TEXT OUT [REPEATS]\n");
    return 64;
  }
  try {
    run(words[1], words[2], words[3], count > 4 ? std::stoi(words[4]) : 0);
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "t3d_bench_tokenizers: {}\n", error.what());
    return static_cast<int>(error.code());
  }
}
