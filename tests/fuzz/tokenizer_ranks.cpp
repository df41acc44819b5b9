// Files of ranks ("BASE64 RANK" per line): whatever loads gives every text back.
#include "fuzz/fuzz.hpp"
#include "tokenizer/tiktoken.hpp"
#include "tokenizer/tokenizer.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  // All bytes have ranks, so that few lines make a tokenizer.
  static const std::string alphabet = [] {
    static const std::string letters =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text = "# pattern llama3\n";
    for (unsigned byte = 0; byte < 256; ++byte)
      text += std::string{letters[byte >> 2U], letters[byte << 4U & 63U]} +
              "== " + std::to_string(byte) + "\n";
    return text;
  }();
  const std::string input(t3d::test::as_text(data, bytes));
  (void)t3d::is_tiktoken(input);
  for (const std::string& file : {input, alphabet + input})
    t3d::test::expect_answer([&] {
      const auto tokenizer = t3d::make_tiktoken_tokenizer(file);
      const std::string text =
          "The cat's 12 caf\xC3\xA9 \xE4\xB8\xAD\xE6\x96\x87  \n\xF0\x9F\x98\x80";
      if (tokenizer->decode(tokenizer->encode(text)) != text) std::abort();
    });
  return 0;
}
