// Which ids end and begin a text, by the files of a model.
#include "tokenizer/special_files.hpp"

#include <fstream>

#include "core/error.hpp"
#include "io/hdf5/token_file.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"

using namespace t3d;
using t3d::test::ScratchFolder;

namespace {

std::string added(int id, const std::string& text) {
  return "{\"id\": " + std::to_string(id) + ", \"content\": \"" + text +
         "\", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, "
         "\"normalized\": false, \"special\": true}";
}

const std::string kTokenizer = "{\"added_tokens\": [" + added(0, "<|endoftext|>") + "," +
                               added(1, "<|im_start|>") + "," + added(2, "<|im_end|>") + R"(],
  "model": {"type": "WordLevel", "unk_token": "<|endoftext|>",
            "vocab": {"<|endoftext|>": 0, "<|im_start|>": 1, "<|im_end|>": 2, "a": 3}}})";

void write(const ScratchFolder& folder, const std::string& name, const std::string& text) {
  std::ofstream(folder.path() + "/" + name, std::ios::binary) << text;
}

struct Read {
  SpecialIds ids;
  std::vector<std::string> notes;
};
Read read(const ScratchFolder& folder) {
  Read read;
  const auto tokenizer = make_json_tokenizer(kTokenizer);
  read.ids = special_ids_of_folder(folder.path(), tokenizer.get(), 4, read.notes);
  return read;
}

}  // namespace

TEST_CASE("a model's files say how a text ends, in the order of transformers") {
  const ScratchFolder folder("special_files");
  CHECK(read(folder).ids == SpecialIds{-1, 0, -1, 0});  // by its name
  write(folder, "config.json", R"({"eos_token_id": 2, "bos_token_id": 1, "pad_token_id": null})");
  CHECK(read(folder).ids == SpecialIds{1, 2, -1, 0});
  CHECK(read(folder).notes.size() == 1);  // files and name differ
  write(folder, "generation_config.json", R"({"eos_token_id": [2, 0], "pad_token_id": 0})");
  CHECK(read(folder).ids == SpecialIds{1, 2, 0, 0, {2, 0}});
  write(
      folder, "tokenizer_config.json",
      R"({"eos_token": {"content": "<|endoftext|>"}, "bos_token": null, "add_bos_token": false})");
  CHECK(read(folder).ids == SpecialIds{1, 0, 0, 0, {2, 0}, false, {.bos = true}});
  CHECK(read(folder).notes.empty());
  CHECK(read(folder).ids.all_ends() == std::vector<std::int32_t>{2, 0});
}

TEST_CASE("what the model's files alone say does not go into its tokenizer's") {
  const ScratchFolder folder("special_files_unnamed");
  write(folder, "config.json", R"({"eos_token_id": 2, "bos_token_id": 1, "pad_token_id": 0})");
  const auto tokenizer = make_json_tokenizer(kTokenizer);
  const auto config_of = [&] { return tokenizer->files(read(folder).ids).back().text; };
  CHECK_THAT(config_of(), test::contains("\"bos_token\""));  // nothing is known of the tokenizer's
  write(folder, "tokenizer_config.json",
        R"({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>"})");
  CHECK_THAT(config_of(), test::contains("\"eos_token\": \"<|im_end|>\""));
  CHECK_THAT(config_of(), !test::contains("bos_token"));
  CHECK_THAT(config_of(), !test::contains("pad_token"));
  CHECK(read(folder).ids.bos == 1);  // of documents, and of the model's files
}

TEST_CASE("ids that no token has are left out, and files that are no objects refused") {
  const ScratchFolder folder("special_files_bad");
  write(folder, "config.json", R"({"eos_token_id": [50256, 2], "bos_token_id": "x"})");
  const Read found = read(folder);
  CHECK(found.ids == SpecialIds{-1, 2, -1, 0});
  CHECK(found.notes.size() == 3);
  write(folder, "generation_config.json", "[1]");
  CHECK_THROWS_AS(read(folder), Error);
}

TEST_CASE("ids that the model has and its tokenizer has not are told by their number") {
  const ScratchFolder folder("special_files_more");
  write(folder, "config.json", R"({"eos_token_id": 4, "bos_token_id": 5, "pad_token_id": 4})");
  const auto tokenizer = make_json_tokenizer(kTokenizer);
  std::vector<std::string> notes;
  const SpecialIds ids = special_ids_of_folder(folder.path(), tokenizer.get(), 6, notes);
  CHECK(ids == SpecialIds{5, 4, 4, 0});
  REQUIRE(notes.size() == 1);
  CHECK_THAT(notes[0], test::contains("is 4 by the files"));
  CHECK_THAT(notes[0], test::contains("0 (<|endoftext|>)"));
  const std::string config = tokenizer->files(ids).back().text;
  for (const char* key : {"bos_token", "eos_token", "pad_token"})
    CHECK_THAT(config, !test::contains("\"" + std::string(key) + "\""));
  CHECK_THAT(config, test::contains("\"unk_token\": \"<|endoftext|>\""));
}

TEST_CASE("where a token file says no ids they are the tokenizer's") {
  const ScratchFolder folder("special_files_old");
  const auto tokenizer = make_json_tokenizer(kTokenizer);
  const auto ids_of = [&](const SpecialIds& kept) {
    const std::string path = folder.path() + "/t.h5";
    TokenFileInfo info{4, tokenizer->kind(), tokenizer->model(), "a.txt", 1, 0};
    info.special = kept;
    TokenFileWriter(path, info).finish();
    std::vector<std::string> notes;
    return load_special_ids(path, *load_tokenizer(path), notes);
  };
  CHECK(ids_of({}) == SpecialIds{-1, 0, -1, 0});
  CHECK(ids_of({1, 2, -1, -1}) == SpecialIds{1, 2, -1, -1});
  const std::string first = T3D_TEST_SOURCE "/reference/tokens_format1.h5";
  std::vector<std::string> notes;
  CHECK(load_special_ids(first, *load_tokenizer(first), notes).unknown == 0);
}

TEST_CASE("special ids go as text and come back") {
  for (const SpecialIds& ids : {SpecialIds{}, SpecialIds{1, 2, -1, 0},
                                SpecialIds{1, 2, 3, 0, {2, 5}}, SpecialIds{1, -1, -1, -1, {}, true},
                                SpecialIds{1, 2, 0, -1, {}, false, {.bos = true, .pad = true}}})
    CHECK(special_ids_of_text(special_text(ids)) == ids);
  CHECK_THROWS_AS(special_ids_of_text("{}"), Error);
  const auto with = [](const std::string& bos, const std::string& ends) {
    return special_ids_of_text(R"({"eos": 0, "pad": -1, "unknown": -1, "bos": )" + bos +
                               R"(, "ends": [)" + ends + "]}");
  };
  CHECK(with("2147483647", "0, 2147483647").bos == 2147483647);
  for (const char* id : {"-2", "1.0", "1e3", "\"1\"", "null", "true", "2147483648", "4294967298",
                         "-4294967295", "18446744073709551615", "18446744073709551618"}) {
    CAPTURE(id);
    CHECK_THROWS_AS(with(id, "0"), Error);
    CHECK_THROWS_AS(with("0", id), Error);
  }
  CHECK(with("-1", "0").bos == -1);
  CHECK_THROWS_AS(with("0", "-1"), Error);
}

TEST_CASE("a user names an id by its number or its token") {
  const auto tokenizer = make_json_tokenizer(kTokenizer);
  CHECK(named_id("<|im_end|>", tokenizer.get(), 4) == 2);
  CHECK(named_id("3", tokenizer.get(), 4) == 3);
  CHECK(named_id("3", nullptr, 4) == 3);
  CHECK_THROWS_AS(named_id("4", tokenizer.get(), 4), Error);
  CHECK_THROWS_AS(named_id("</s>", tokenizer.get(), 4), Error);
}
