// Small tokenizers trained by Hugging Face's trainers, and what their programs make of a text of
// many scripts, code, emoji and controls (bench/tokenizers_reference.py make): the same ids, the
// same text back.
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "io/posix_file.hpp"
#include "support/catch.hpp"
#include "tokenizer/parts/utf8.hpp"
#include "tokenizer/tokenizer.hpp"

using namespace t3d;
using Ids = std::vector<std::int32_t>;

namespace {

const std::string kFolder = std::string(T3D_TEST_SOURCE) + "/reference/tokenizers/";

const nlohmann::json& expected() {
  static const auto json = nlohmann::json::parse(read_text_file(kFolder + "expected.json"));
  return json;
}

std::string text_of(const nlohmann::json& entry, const std::string& otherwise) {
  return entry.is_null() ? otherwise : entry.get<std::string>();
}

}  // namespace

TEST_CASE("ids and texts are those of the programs that trained the tokenizer") {
  const std::string text = read_text_file(kFolder + "text.txt");
  CHECK(expected().size() == 9);
  for (const auto& [name, wanted] : expected().items()) {
    CAPTURE(name);
    const auto tokenizer = load_tokenizer(kFolder + name + ".json");
    const Ids document = tokenizer->encode_document(text);
    CHECK(document == wanted["ids"].get<Ids>());
    CHECK(tokenizer->encode(text).size() == wanted["count"].get<std::size_t>());
    CHECK(tokenizer->encode(text) == tokenizer->encode(text));  // from the cache, too
    CHECK((tokenizer->decode(document) == text_of(wanted["text"], text)));
    CHECK((tokenizer->decode(document, Specials::show) == text_of(wanted["shown"], text)));
  }
}

TEST_CASE("a text that comes id by id is the text, in whole characters") {
  const std::string text = read_text_file(kFolder + "text.txt");
  for (const auto& [name, wanted] : expected().items()) {
    CAPTURE(name);
    const auto tokenizer = load_tokenizer(kFolder + name + ".json");
    Ids ids = wanted["ids"].get<Ids>();
    for (const bool shuffled : {false, true}) {
      if (shuffled)  // then bytes of characters stand alone
        for (std::size_t n = 0; n < ids.size(); ++n) std::swap(ids[n], ids[n * n % ids.size()]);
      const auto stream = tokenizer->stream(Specials::skip);
      std::string joined;
      std::size_t late = 0;
      for (const std::int32_t id : ids) {
        const std::string part = stream->feed(id);
        CHECK(tok::is_utf8(part));
        joined += part;
        if (part.empty()) ++late;
      }
      joined += stream->finish();
      CHECK((joined == tokenizer->decode(ids)));
      CHECK(late < ids.size() / 2);  // it does come id by id
    }
  }
}
