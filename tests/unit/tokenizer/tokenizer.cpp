#include "tokenizer/tokenizer.hpp"

#include <fstream>
#include <random>

#include "core/error.hpp"
#include "data/token_source.hpp"
#include "data/tokenize.hpp"
#include "data/tokenize/train_sentencepiece.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"
#include "tokenizer/parts/utf8.hpp"

using namespace t3d;
using t3d::test::ScratchFolder;

namespace {

const std::vector<std::string> kSyllables{"ka",  "lo",  "mi",  "ter", "sun", "pra", "ve", "on",
                                          "qui", "sta", "bel", "do",  "ri",  "fen", "gu", "hax"};

std::string some_text(unsigned seed, int lines) {
  std::mt19937 random(seed);
  std::string text;
  for (int line = 0; line < lines; ++line) {
    for (unsigned word = 0; word < 3 + random() % 9; ++word) {
      for (unsigned n = 0; n < 1 + random() % 3; ++n)
        text += kSyllables[random() % kSyllables.size()];
      text += random() % 12 == 0 ? "  " : " ";
    }
    text += random() % 10 == 0 ? ".\n\n" : ",\n";
  }
  return text;
}

/// Texts that tokenizers like to change.
const std::vector<std::string> kTexts{
    "",
    " ",
    "   ",
    "\n",
    "\n\n\n",
    "\t\ttabs\t",
    " leading and trailing ",
    "two  spaces   three",
    "line one\n  indented\r\nline three\n",
    "\xC3\xA9t\xC3\xA9 na\xC3\xAFve",
    "e\xCC\x81 is not \xC3\xA9",
    "\xEF\xAC\x81 ligature, \xE2\x85\xA3 numeral, \xEF\xBC\xA1 wide",
    "\xF0\x9F\x98\x80 emoji \xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x92\xBB",
    "the mark \xE2\x96\x81 itself\xE2\x96\x81\xE2\x96\x81",
    "<s> </s> <unk> <0x0A> \xE2\x81\x87",
    "\xC2\xA0no-break\xE2\x80\x8Bzero\xEF\xBB\xBF",
    "\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E\xE3\x81\xAE\xE6\x96\x87\xE7\xAB\xA0",
    "12345 3.14159",
    std::string("nul\0inside", 10)};

std::string write_text(const ScratchFolder& folder, const std::string& name,
                       const std::string& text) {
  const std::string path = folder.path() + "/" + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

}  // namespace

TEST_CASE("bytes tokenize as themselves") {
  const auto tokenizer = make_byte_tokenizer();
  CHECK(tokenizer->encode("a\xff\n") == std::vector<std::int32_t>{97, 255, 10});
  for (const auto& text : kTexts) CHECK(tokenizer->decode(tokenizer->encode(text)) == text);
  CHECK_THROWS_AS(tokenizer->decode(std::vector<std::int32_t>{256}), Error);
}

TEST_CASE("SentencePiece gives back every text") {
  const ScratchFolder folder("sentencepiece");
  const std::string path = write_text(folder, "corpus.txt", some_text(1, 3000));
  for (const std::string kind : {"bpe", "unigram"}) {
    CAPTURE(kind);
    const auto tokenizer = make_sentencepiece_tokenizer(train_sentencepiece({path}, kind, 500));
    CHECK(tokenizer->vocab() > 300);
    CHECK(tokenizer->vocab() <= 500);
    for (const auto& text : kTexts) {
      CAPTURE(text);
      const auto ids = tokenizer->encode(text);
      CHECK(tokenizer->decode(ids) == text);
      for (const auto id : ids) CHECK((id > 0 && id < tokenizer->vocab()));  // 0 is "unknown"
    }
    const std::string fresh = some_text(2, 200);
    const auto ids = tokenizer->encode(fresh);
    CHECK(tokenizer->decode(ids) == fresh);
    CHECK(ids.size() * 2 < fresh.size());  // it learned something
    CHECK_THROWS_AS(tokenizer->decode(std::vector<std::int32_t>{100000}), Error);
  }
}

TEST_CASE("a tokenizer that is trained here has an end of documents, which no text becomes") {
  const ScratchFolder folder("eos");
  const std::string path = write_text(folder, "corpus.txt", some_text(5, 2000));
  for (const std::string kind : {"bpe", "unigram"}) {
    CAPTURE(kind);
    const auto tokenizer = make_sentencepiece_tokenizer(train_sentencepiece({path}, kind, 400));
    CHECK(tokenizer->special_ids() == SpecialIds{-1, 1, -1, 0});
    for (const std::int32_t id : tokenizer->encode("the end<eos></s> of it")) CHECK(id != 1);
    auto ids = tokenizer->encode("kalo mi");
    ids.push_back(1);
    CHECK(tokenizer->decode(ids) == "kalo mi");
    CHECK(tokenizer->decode(ids, Specials::show) == "kalo mi<eos>");
    CHECK(tokenizer->files().at(0).name == "tokenizer.model");
    CHECK(tokenizer->files().back().name == "tokenizer_config.json");
    for (const char* key : {"model_input_names", "tokenizer_class", "\"eos_token\": \"<eos>\""})
      CHECK(tokenizer->files().back().text.find(key) != std::string::npos);
  }
}

TEST_CASE(
    "a vocabulary that is too small for a text's characters is answered with the needed one") {
  const ScratchFolder folder("small_vocab");
  std::string text;
  for (int n = 0; n < 60; ++n)
    text += std::string("\xe4\xb8") + static_cast<char>(0x80 + n) + " ";  // U+4E00 on
  const std::string path = write_text(folder, "corpus.txt", text);
  try {
    (void)train_sentencepiece({path}, "bpe", 270);
    FAIL("it was trained");
  } catch (const Error& error) {
    const std::string said = error.what();
    CHECK(error.code() == ExitCode::config);
    CHECK(said.find(".cc") == std::string::npos);
    CHECK(said.find("270") != std::string::npos);
    CHECK(said.find("319") != std::string::npos);  // 256 bytes, 60 + 1 characters, <unk>, <eos>
  }
}

TEST_CASE("a SentencePiece model that has a begin of a text puts it there") {
  // The messages of sentencepiece_model.proto: piece (1: text, 3: type), trainer (3: BPE).
  std::string model;
  const auto add_piece = [&](const std::string& text, char type) {
    const std::string piece = "\x0a" + std::string(1, static_cast<char>(text.size())) + text +
                              "\x18" + std::string(1, type);
    model += "\x0a" + std::string(1, static_cast<char>(piece.size())) + piece;
  };
  add_piece("<unk>", 2);
  add_piece("<s>", 3);
  add_piece("</s>", 3);
  add_piece("\xe2\x96\x81", 1);
  add_piece("a", 1);
  model += std::string("\x12\x02\x18\x02", 4);
  const auto tokenizer = make_sentencepiece_tokenizer(model);
  CHECK(tokenizer->special_ids() == SpecialIds{1, 2, -1, 0});
  CHECK(tokenizer->encode("a") == std::vector<std::int32_t>{3, 4});
  CHECK(tokenizer->encode_document("a") == std::vector<std::int32_t>{1, 3, 4});
  CHECK(tokenizer->token_id("</s>") == 2);
  CHECK(tokenizer->token_id("none") == -1);
  // Of ids that only a model has there are no names.
  const std::string config = tokenizer->files({1, 2, 5, 0}).back().text;
  CHECK(config.find("\"bos_token\": \"<s>\"") != std::string::npos);
  CHECK(config.find("\"pad_token\": \"") == std::string::npos);
}

namespace {

/// `text` in two pieces, cut at `at`, as tokenize encodes them.
std::vector<std::int32_t> in_two(const Tokenizer& tokenizer, const std::string& text,
                                 std::size_t at) {
  auto ids = tokenizer.encode(text.substr(0, at));
  const auto rest = tokenizer.encode_rest(text.substr(at), text[at - 1]);
  ids.insert(ids.end(), rest.begin(), rest.end());
  return ids;
}

/// Like the models of others: normalizer_spec { add_dummy_prefix, remove_extra_whitespaces }.
std::string with_spaces(const std::string& model, bool prefix, bool strips) {
  return model + std::string("\x1a\x04\x18") + static_cast<char>(prefix) + "\x20" +
         static_cast<char>(strips);
}

}  // namespace

TEST_CASE("what goes on behind another text gets no begin of a text") {
  const ScratchFolder folder("goes_on");
  const std::string path = write_text(folder, "corpus.txt", some_text(9, 2000));
  const std::string model = train_sentencepiece({path}, "bpe", 400);
  std::vector<std::unique_ptr<Tokenizer>> all;
  for (const bool strips : {false, true})
    for (const bool prefix : {false, true})
      all.push_back(make_sentencepiece_tokenizer(with_spaces(model, prefix, strips)));
  for (const char* name : {"gpt2", "llama2", "llama3", "mistral", "suffix-bpe"})
    all.push_back(
        load_tokenizer(std::string(T3D_TEST_SOURCE) + "/reference/tokenizers/" + name + ".json"));
  const std::string text = "kalo mi\nmi kalo\ntem kalo";
  for (const auto& tokenizer : all)
    for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1))
      CHECK(in_two(*tokenizer, text, at + 1) == tokenizer->encode(text));
  // A space that a stripping model takes away at the border is still one.
  for (const std::string spaced : {"mi kalo", "mi  kalo"})
    for (const std::size_t at : {2U, 3U})
      for (const std::size_t n : {2U, 3U})
        CHECK(in_two(*all[n], spaced, at) == all[n]->encode(spaced));
}

TEST_CASE("U+2581 in a text is a space for models of others, as for their programs") {
  const ScratchFolder folder("marks");
  const std::string path = write_text(folder, "corpus.txt", some_text(9, 2000));
  const std::string model = train_sentencepiece({path}, "bpe", 400);
  const std::string marked = "kalo\xE2\x96\x81mi", spaced = "kalo mi";
  const auto here = make_sentencepiece_tokenizer(model);
  CHECK(here->encode(marked) != here->encode(spaced));
  CHECK(here->decode(here->encode(marked)) == marked);
  const auto other = make_sentencepiece_tokenizer(with_spaces(model, true, false));
  CHECK(other->encode(marked) == other->encode(spaced));
  // One that has a tokenizer.json, too: a second control piece, as no model here has it.
  const std::string begin = "\x0a\x07\x0a\x03<s>\x18\x03";
  const auto with_begin = make_sentencepiece_tokenizer(model + begin);
  CHECK(with_begin->encode(marked) == with_begin->encode(spaced));
  const auto files = with_begin->files();
  REQUIRE(files.size() == 3);
  CHECK(make_tokenizer("tokenizer.json", files[1].text)->encode(marked) ==
        with_begin->encode(marked));
}

TEST_CASE("a BPE model that is trained here goes out as tokenizer.json with the same ids") {
  const ScratchFolder folder("json");
  const std::string path =
      write_text(folder, "corpus.txt", some_text(8, 3000) + std::string(4000, 'a') + "\nababababa");
  const std::string model = train_sentencepiece({path}, "bpe", 700);
  const auto tokenizer = make_sentencepiece_tokenizer(model);
  const auto files = tokenizer->files();
  REQUIRE(files.size() == 3);
  for (const TokenizerFile& file : files) write_text(folder, file.name, file.text);
  CHECK(files[1].name == "tokenizer.json");
  const auto made = make_tokenizer("tokenizer.json", files[1].text);
  CHECK(made->vocab() == tokenizer->vocab());
  CHECK(made->special_ids() == tokenizer->special_ids());
  std::vector<std::string> texts = kTexts;
  std::mt19937 random(3);
  for (unsigned seed = 0; seed < 300; ++seed) {
    texts.push_back(some_text(100 + seed, 2) + kTexts[random() % kTexts.size()]);
    std::string letters;  // of few kinds, so that pieces overlap in every way
    for (unsigned n = 0; n < random() % 60; ++n) letters += "aab o"[random() % 5];
    texts.push_back(letters + std::string(seed % 41, 'a') + std::string(seed % 7, ' '));
  }
  for (const std::string& text : texts) {
    CAPTURE(text);
    const auto ids = tokenizer->encode(text);
    CHECK((made->encode(text) == ids));
    CHECK(made->decode(ids) == text);
  }
  // Of the folder, the run's own file is the tokenizer; but not beside another tokenizer.json.
  CHECK(tokenizer_hash(*load_tokenizer(folder.path())) == tokenizer_hash(*tokenizer));
  write_text(folder, "tokenizer.json", files[1].text + " ");
  CHECK(load_tokenizer(folder.path())->kind() == "tokenizer.json");
  write_text(folder, "tokenizer.json", files[1].text);
  write_text(folder, "tokenizer.model", "no model");
  CHECK(load_tokenizer(folder.path())->kind() == "tokenizer.json");
  const auto other = make_sentencepiece_tokenizer(train_sentencepiece({path}, "unigram", 400));
  CHECK(std::ranges::none_of(
      other->files(), [](const TokenizerFile& file) { return file.name == "tokenizer.json"; }));
}

TEST_CASE("SentencePiece and bytes give a text id by id") {
  const ScratchFolder folder("stream");
  const std::string path = write_text(folder, "corpus.txt", some_text(6, 2000));
  std::vector<std::unique_ptr<Tokenizer>> all;
  all.push_back(make_byte_tokenizer());
  all.push_back(make_sentencepiece_tokenizer(train_sentencepiece({path}, "bpe", 400)));
  for (const auto& tokenizer : all) {
    CAPTURE(tokenizer->kind());
    for (const auto& text : kTexts) {
      CAPTURE(text);
      const auto stream = tokenizer->stream(Specials::skip);
      std::string joined;
      for (const std::int32_t id : tokenizer->encode(text)) {
        const std::string part = stream->feed(id);
        CHECK(tok::is_utf8(part));
        joined += part;
      }
      CHECK(joined + stream->finish() == text);
    }
    std::mt19937 random(9);  // ids in any order: bytes that are no characters, too
    for (int round = 0; round < 50; ++round) {
      std::vector<std::int32_t> ids(30);
      for (auto& id : ids)
        id = static_cast<std::int32_t>(random() % static_cast<unsigned>(tokenizer->vocab()));
      const auto stream = tokenizer->stream(Specials::skip);
      std::string joined;
      for (const std::int32_t id : ids) joined += stream->feed(id);
      CHECK(joined + stream->finish() == tokenizer->decode(ids));
    }
  }
}

TEST_CASE("training says what is wrong") {
  const ScratchFolder folder("training");
  const std::string path = write_text(folder, "corpus.txt", some_text(1, 100));
  CHECK_THROWS_WITH(train_sentencepiece({path}, "bpe", 100), t3d::test::contains("cannot train"));
  CHECK_THROWS_WITH(train_sentencepiece({path}, "words", 500),
                    t3d::test::contains("unknown tokenizer"));
  CHECK_THROWS_WITH(train_sentencepiece({folder.path() + "/no*"}, "bpe", 500),
                    t3d::test::contains("does not exist"));
  CHECK_THROWS_AS(make_sentencepiece_tokenizer("no model"), Error);
  // One line of megabytes is training material too.
  std::string line = some_text(4, 1000);
  for (char& letter : line) letter = letter == '\n' ? ' ' : letter;
  CHECK_NOTHROW(train_sentencepiece({write_text(folder, "line.txt", line)}, "bpe", 400));
}

TEST_CASE("a corpus becomes token files that carry their tokenizer") {
  const ScratchFolder folder("tokenize");
  const std::string text = some_text(7, 30000);  // several pieces
  write_text(folder, "a.txt", text.substr(0, 100000));
  write_text(folder, "b.txt", text.substr(100000));
  for (const std::string kind : {"bytes", "bpe", "unigram"}) {
    CAPTURE(kind);
    TokenizeOptions options;
    options.kind = kind;
    options.vocab = 600;
    options.valid_fraction = 0.1;
    const auto result =
        tokenize_corpus({folder.path() + "/*.txt"}, folder.path() + "/" + kind, options);
    CHECK(result.text_bytes == static_cast<index_t>(text.size()));
    std::string whole;
    for (const std::string& path : {result.train_path, result.valid_path}) {
      const auto source = make_token_source({path});
      std::vector<std::int32_t> ids(static_cast<std::size_t>(source->size()));
      source->read(0, source->size(), ids.data());
      whole += load_tokenizer(path)->decode(ids);
      CHECK(source->vocab() == result.vocab);
      const double bytes = source->bytes_per_token();
      CHECK((kind == "bytes" ? bytes == 1.0 : bytes > 2.0));
    }
    CHECK(whole == text);
    const auto valid = static_cast<double>(result.valid_tokens);
    CHECK(valid / static_cast<double>(result.train_tokens + result.valid_tokens) ==
          Approx(0.1).margin(0.01));
    options.model_file = result.train_path;  // the same tokenizer again
    if (kind != "bytes") {
      const auto again =
          tokenize_corpus({folder.path() + "/a.txt"}, folder.path() + "/again", options);
      CHECK(again.vocab == result.vocab);
    }
  }
}
