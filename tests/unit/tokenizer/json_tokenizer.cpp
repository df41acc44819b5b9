// tokenizer.json: what its parts do in small, and what is said of files that are none.

#include <nlohmann/json.hpp>
#include <thread>

#include "core/error.hpp"
#include "io/posix_file.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"
#include "tokenizer/tokenizer.hpp"

using namespace t3d;
using nlohmann::json;
using t3d::test::ScratchFolder;
using Ids = std::vector<std::int32_t>;

namespace {

/// Words with a BPE of a few merges.
json small() {
  return json::parse(R"({"version":"1.0","truncation":null,"padding":null,
    "added_tokens":[{"id":7,"content":"<s>","single_word":false,"lstrip":false,"rstrip":false,
                     "normalized":false,"special":true}],
    "normalizer":null,"pre_tokenizer":{"type":"WhitespaceSplit"},"post_processor":null,
    "decoder":null,
    "model":{"type":"BPE","dropout":null,"unk_token":"<unk>","continuing_subword_prefix":null,
             "end_of_word_suffix":null,"fuse_unk":false,"byte_fallback":false,
             "vocab":{"<unk>":0,"a":1,"b":2,"c":3,"ab":4,"bc":5,"abc":6},
             "merges":[["a","b"],["b","c"],["ab","c"]]}})");
}

std::unique_ptr<Tokenizer> made(const json& file) { return make_json_tokenizer(file.dump()); }

/// What is said of a file; empty when it is taken.
std::string said(const std::string& file) {
  try {
    (void)make_json_tokenizer(file);
    return {};
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::io);
    return error.what();
  }
}

/// The same of small() with one value replaced, by its place.
std::string said(const std::string& place, const json& value) {
  json file = small();
  file[json::json_pointer(place)] = value;
  return said(file.dump());
}

void check_says(const std::string& text, const std::string& part) {
  CAPTURE(text);
  CHECK(text.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("merges go by rank, then from the left; what is unknown is one token or several") {
  const auto tokenizer = made(small());
  CHECK(tokenizer->encode("abc bc cab aab") == Ids{6, 5, 3, 4, 1, 4});
  CHECK(tokenizer->encode("xyab") == Ids{0, 0, 4});
  CHECK(tokenizer->encode("ab<s>c") == Ids{4, 7, 3});
  CHECK(tokenizer->vocab() == 8);
  CHECK(tokenizer->decode(Ids{4, 7, 3}) == "ab c");
  CHECK(tokenizer->decode(Ids{4, 7, 3}, Specials::show) == "ab <s> c");
  json file = small();
  file["model"]["fuse_unk"] = true;
  CHECK(made(file)->encode("xyabz") == Ids{0, 4, 0});
  CHECK(tokenizer->encode("").empty());
}

TEST_CASE("special ids come from the post-processor, else from names") {
  json file = small();
  CHECK(made(file)->special_ids() == SpecialIds{7, -1, -1, 0});
  file["post_processor"] = {{"type", "BertProcessing"}, {"sep", {"c", 3}}, {"cls", {"a", 1}}};
  const auto tokenizer = made(file);
  CHECK(tokenizer->special_ids() == SpecialIds{1, 3, -1, 0});
  CHECK(tokenizer->encode_document("b") == Ids{1, 2, 3});
  CHECK(tokenizer->encode("b") == Ids{2});
  const auto files = tokenizer->files();
  REQUIRE(files.size() == 2);
  CHECK(files[0].text == tokenizer->model());
  CHECK(files[1].name == "tokenizer_config.json");
  CHECK(json::parse(files[1].text)["eos_token"] == "c");
  CHECK(json::parse(files[1].text)["model_input_names"] == json{"input_ids", "attention_mask"});
}

TEST_CASE("where a normalizer has removed the first character, no text begins") {
  json file = small();
  file["model"]["vocab"]["\xE2\x96\x81"] = 8;
  file["pre_tokenizer"] = {
      {"type", "Metaspace"}, {"replacement", "\xE2\x96\x81"}, {"prepend_scheme", "first"}};
  const json strip{{"type", "Strip"}, {"strip_left", true}, {"strip_right", false}};
  const json replace{{"type", "Replace"}, {"pattern", {{"String", "b"}}}, {"content", ""}};
  const json bert{{"type", "BertNormalizer"},
                  {"clean_text", true},
                  {"handle_chinese_chars", false},
                  {"strip_accents", true},
                  {"lowercase", false}};
  const auto ids = [&](const json& normalizer, const std::string& text) {
    file["normalizer"] = normalizer;
    return made(file)->encode(text);
  };
  CHECK(ids(nullptr, "a") == Ids{8, 1});
  CHECK(ids(strip, "a") == Ids{8, 1});
  CHECK(ids(strip, " a") == Ids{1});
  CHECK(ids(replace, "ab") == Ids{8, 1});
  CHECK(ids(replace, "ba") == Ids{1});
  CHECK(ids(bert, "a\x01") == Ids{8, 1});
  CHECK(ids(bert,
            "\x01"
            "a") == Ids{1});
  CHECK(ids(bert,
            "\xCC\x81"
            "a") == Ids{1});
  CHECK(ids({{"type", "Nmt"}},
            "\x01"
            "a") == Ids{1});
  CHECK(ids({{"type", "StripAccents"}},
            "\xCC\x81"
            "a") == Ids{1});
  const json both{{"type", "Sequence"}, {"normalizers", {strip, {{"type", "NFC"}}}}};
  CHECK(ids(both, " a") == Ids{1});
}

TEST_CASE("white space that one added token has taken is not another one") {
  json file = small();
  json token = file["added_tokens"][0];
  token["content"] = " ";
  token["id"] = 8;
  token["lstrip"] = token["rstrip"] = true;
  file["added_tokens"].push_back(token);
  CHECK(made(file)->encode("a  b") == Ids{1, 8, 2});
  CHECK(made(file)->encode("a b   c") == Ids{1, 8, 2, 8, 3});
  file["added_tokens"][1]["normalized"] = true;
  file["normalizer"] = {{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}};
  check_says(said(file.dump()), "added_tokens: \" \" is nothing when normalized");
}

TEST_CASE("threads may use one tokenizer") {
  const auto tokenizer = made(small());
  std::string text;
  for (std::size_t n = 0; n < 20000; ++n) text += std::string(n % 40, 'b') + "abc ";
  const Ids alone = tokenizer->encode(text);
  std::array<Ids, 4> all;
  std::vector<std::thread> threads;
  for (Ids& ids : all) threads.emplace_back([&] { ids = tokenizer->encode(text); });
  for (std::thread& thread : threads) thread.join();
  for (const Ids& ids : all) CHECK((ids == alone));
}

TEST_CASE("a broken file is answered with the part") {
  const std::string file = small().dump();
  for (const std::size_t bytes : {std::size_t{1}, file.size() / 3, file.size() - 1})
    check_says(said(file.substr(0, bytes)), "not JSON");
  check_says(said(std::string(100000, '[')), "brackets");
  check_says(said(R"({"model":{"a":)" + std::string(100000, '{')), "not JSON");
  check_says(said("{\"version\":\"1.0\"}"), "\"model\" is missing");
  check_says(said("[]"), "an object is expected");
  check_says(said(R"({"a":1,"a":2})"), "\"a\" comes twice");
  check_says(said("{\"model\":\"\xff\"}"), "not JSON");
}

TEST_CASE("a part that is not known is an error, not other ids") {
  const json strange{{"type", "Strange"}};
  check_says(said("/model/type", "Strange"), "model: models of type \"Strange\"");
  check_says(said("/normalizer", strange), "normalizer: normalizers of type \"Strange\"");
  check_says(said("/normalizer", {{"type", "Sequence"}, {"normalizers", {strange}}}),
             "normalizer.normalizers[0]: ");
  check_says(said("/pre_tokenizer", strange), "pre_tokenizer: ");
  check_says(said("/post_processor", strange), "post_processor: ");
  check_says(said("/decoder", strange), "decoder: ");
  check_says(said("/model/new_idea", true), "model: \"new_idea\" is not known");
  check_says(said("/model/dropout", 0.1), "model.dropout");
  check_says(said("/pre_tokenizer/new_idea", true), "pre_tokenizer: \"new_idea\"");
  check_says(said("/new_idea", true), "\"new_idea\" is not known");
  check_says(
      said("/normalizer", {{"type", "Replace"}, {"pattern", {{"Regex", "(a"}}}, {"content", ""}}),
      "normalizer.pattern.Regex: no regular expression");
  check_says(said("/pre_tokenizer", {{"type", "Split"},
                                     {"pattern", {{"String", "a"}}},
                                     {"behavior", "Sideways"},
                                     {"invert", false}}),
             "pre_tokenizer.behavior: \"Sideways\"");
}

TEST_CASE("tokens and ids that do not fit together are answered") {
  check_says(said("/model/merges/1", {"b", "x"}),
             "model.merges[1]: \"x\" is not in the vocabulary");
  check_says(said("/model/merges/1", {"c", "c"}), "model.merges[1]: \"cc\" is not");
  check_says(said("/model/merges/1", "b"), "model.merges[1]: ");
  check_says(said("/model/merges/1", {"b"}), "model.merges[1]: a merge has two tokens");
  check_says(said("/model/merges/1", 5), "model.merges[1]: a text is expected");
  check_says(said("/model/merges", {{"a", "b"}}), "a list is expected");
  check_says(said("/model/vocab/b", 1), "has id 1, too");
  check_says(said("/model/vocab/b", -1), "model.vocab.\"b\": a whole number");
  check_says(said("/model/vocab/b", 1.5), "model.vocab.\"b\": a whole number");
  check_says(said("/model/vocab/b", 1LL << 40), "model.vocab.\"b\": 1099511627776 is no id");
  check_says(said("/model/vocab/b", UINT64_MAX), "model.vocab.\"b\": a whole number");
  check_says(said("/model/vocab", {1, 2}), "model.vocab: an object");
  check_says(said("/added_tokens/0/id", 3), "added_tokens[0]: ");
  check_says(said("/added_tokens/0/content", "a"), "added_tokens[0]: \"a\" has id 7 here and 1");
  check_says(said("/added_tokens/0/special", 1), "added_tokens[0].special: true or false");
  check_says(said("/added_tokens/1", small()["added_tokens"][0]), "added_tokens[1]: ");
  check_says(
      said("/post_processor", {{"type", "BertProcessing"}, {"sep", {"x", 99}}, {"cls", {"a", 1}}}),
      "post_processor: id 99 is outside");
}

TEST_CASE("ids without a token decode to nothing; ids outside are an error") {
  json file = small();
  file["model"]["vocab"]["far"] = 20;
  const auto tokenizer = made(file);
  CHECK(tokenizer->vocab() == 21);
  CHECK(tokenizer->decode(Ids{1, 15, 2}) == "a b");
  CHECK_THROWS_AS(tokenizer->decode(Ids{21}), Error);
  CHECK_THROWS_AS(tokenizer->decode(Ids{-1}), Error);
}

TEST_CASE("a character that nothing stands in for is answered where there is no other way") {
  json file = small();
  file["model"]["unk_token"] = "nowhere";
  CHECK_THROWS_AS(made(file)->encode("xyz"), Error);
  file["model"]["unk_token"] = nullptr;
  CHECK(made(file)->encode("xayz") == Ids{1});  // left out, as in the programs that made the file
}

TEST_CASE("files and folders are told apart by what is in them") {
  const ScratchFolder folder("json_tokenizer");
  const std::string path = folder.path() + "/tokenizer.json";
  write_text_durably(path, small().dump(1));
  CHECK(load_tokenizer(path)->kind() == "tokenizer.json");
  const auto tokenizer = load_tokenizer(folder.path());
  CHECK(tokenizer->model() == small().dump(1));
  CHECK(tokenizer_hash(*make_tokenizer("tokenizer.json", tokenizer->model())) ==
        tokenizer_hash(*tokenizer));
  const auto once = [&](const std::string& where) {  // the path stands in a message once
    try {
      (void)load_tokenizer(where);
      FAIL("no error for " << where);
    } catch (const Error& error) {
      const std::string text = error.what();
      CAPTURE(text);
      const std::size_t at = text.find(where);
      CHECK(at != std::string::npos);
      CHECK(text.find(where, at + 1) == std::string::npos);
    }
  };
  write_text_durably(path, "{\"model\": 5}");
  once(path);
  once(folder.path() + "/nowhere");
  write_text_durably(folder.path() + "/noise", "this is no tokenizer");
  once(folder.path() + "/noise");
  write_text_durably(folder.path() + "/empty", "");
  once(folder.path() + "/empty");
}
