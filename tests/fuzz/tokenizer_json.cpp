// tokenizer.json: whatever loads can encode and decode. The text behind the last zero byte is
// encoded, too.
#include "fuzz/fuzz.hpp"
#include "tokenizer/tokenizer.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string input(t3d::test::as_text(data, bytes));
  const std::size_t end = std::min(input.rfind('\0'), input.size());
  t3d::test::expect_answer([&] {
    const auto tokenizer = t3d::make_json_tokenizer(input.substr(0, end));
    for (const std::string& text :
         {std::string(
              "The cat's 12 caf\xC3\xA9 \xE4\xB8\xAD\xE6\x96\x87<s>  \n\xFF\xF0\x9F\x98\x80"),
          input.substr(end)}) {
      const auto ids = tokenizer->encode_document(text);
      for (const std::int32_t id : ids)
        if (id < 0 || id >= tokenizer->vocab()) std::abort();
      (void)tokenizer->decode(ids);
      (void)tokenizer->decode(ids, t3d::Specials::show);
    }
    (void)tokenizer->special_ids();
    (void)tokenizer->files();
  });
  return 0;
}
