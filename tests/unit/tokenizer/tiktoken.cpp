// Files of ranks, made here of a tokenizer.json: the same tokens of every text.
#include "tokenizer/tiktoken.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "io/posix_file.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"
#include "tokenizer/parts/byte_level.hpp"
#include "tokenizer/tokenizer.hpp"

using namespace t3d;
using Ids = std::vector<std::int32_t>;

namespace {

const std::string kFolder = std::string(T3D_TEST_SOURCE) + "/reference/tokenizers/";

std::string base64(std::string_view bytes) {
  static const std::string letters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t group = 0;
    for (std::size_t n = 0; n < 3; ++n)
      group = group << 8U | (at + n < bytes.size() ? static_cast<std::uint8_t>(bytes[at + n]) : 0U);
    for (std::size_t n = 0; n < 4; ++n)
      out += at + n > bytes.size() ? '=' : letters[group >> (18 - 6 * n) & 63U];
  }
  return out;
}

/// The ranks of the vocabulary of gpt2.json, behind its special token.
std::string ranks() {
  const auto vocab = nlohmann::json::parse(read_text_file(kFolder + "gpt2.json"))["model"]["vocab"];
  std::string file = "# pattern gpt2\n";
  for (const auto& [token, id] : vocab.items()) {
    std::string bytes;
    if (token != "<|endoftext|>" && tok::append_bytes(token, bytes))
      file += fmt::format("{} {}\n", base64(bytes), id.get<int>() - 1);
  }
  return file;
}

std::string said(const std::string& file) {
  try {
    (void)make_tiktoken_tokenizer(file);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("ranks give the tokens that merges give") {
  const auto tokenizer = make_tiktoken_tokenizer(ranks());
  const auto merges = load_tokenizer(kFolder + "gpt2.json");
  std::string text = read_text_file(kFolder + "text.txt");
  for (std::size_t at = text.find("<|endoftext|>"); at != std::string::npos;
       at = text.find("<|endoftext|>"))
    text.erase(at, 13);  // no text becomes a special id of this kind
  const Ids ids = tokenizer->encode(text);
  Ids others = merges->encode(text);
  for (std::int32_t& id : others) --id;
  CHECK((ids == others));
  CHECK((tokenizer->decode(ids) == text));
  const auto end = static_cast<std::int32_t>(tokenizer->vocab() - 1);
  CHECK(tokenizer->special_ids() == SpecialIds{-1, end, -1, -1});
  CHECK(tokenizer->decode(Ids{end}).empty());
  CHECK(tokenizer->decode(Ids{end}, Specials::show) == "<|endoftext|>");
  CHECK_THROWS_AS(tokenizer->decode(Ids{end + 1}), Error);
}

TEST_CASE("Llama 3's ranks have a begin of a text, others have none") {
  std::string file = ranks();
  CHECK(make_tiktoken_tokenizer(file)->encode_document("a") ==
        make_tiktoken_tokenizer(file)->encode("a"));
  file.replace(0, file.find('\n'), "# pattern llama3");
  const auto tokenizer = make_tiktoken_tokenizer(file);
  Ids ids = tokenizer->encode("a ship");
  ids.insert(ids.begin(), tokenizer->token_id("<|begin_of_text|>"));
  CHECK(ids.front() == tokenizer->special_ids().bos);
  CHECK(tokenizer->encode_document("a ship") == ids);
}

TEST_CASE("a file of ranks is known by its lines, and its faults by theirs") {
  const std::string file = ranks();
  CHECK(is_tiktoken(file));
  CHECK(is_tiktoken("IQ== 0\n"));
  CHECK_FALSE(is_tiktoken("IQ== 0\nno rank\n"));
  CHECK_FALSE(is_tiktoken(""));
  const std::string bare = file.substr(file.find('\n') + 1);
  CHECK(said(bare).find("begin the file with a line") != std::string::npos);
  CHECK(said("# pattern strange\n" + bare).find("line 1: ") != std::string::npos);
  CHECK(said(file + "IQ== x\n").find("base64") != std::string::npos);
  CHECK(said(file + "IQ== 5\n").find("came before") != std::string::npos);
  CHECK(said("# pattern gpt2\nIQ== 0\n").find("byte 0 has no rank") != std::string::npos);
  const t3d::test::ScratchFolder folder("tiktoken");
  write_text_durably(folder.path() + "/tiktoken.model", file);
  CHECK(load_tokenizer(folder.path())->kind() == "tiktoken");
}
