// What `tokenize` writes, by one process or several, at once or after being killed.
#include <zstd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "core/error.hpp"
#include "data/text/json_line.hpp"
#include "data/token_source.hpp"
#include "data/tokenize.hpp"
#include "data/tokenize/part_worker.hpp"
#include "io/hdf5/token_file.hpp"
#include "io/posix_file.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"
#include "tokenizer/tokenizer.hpp"

using namespace t3d;
using t3d::test::contains;
using t3d::test::ScratchFolder;

namespace {

void write(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::string json(const std::string& text) { return "{\"n\":1,\"text\":\"" + text + "\"}\n"; }

std::string packed(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

/// The documents of a token file of bytes.
std::vector<std::string> documents_of(const std::string& path) {
  TokenFileReader file(path);
  file.verify();
  std::vector<std::int32_t> ids(static_cast<std::size_t>(file.info().tokens));
  file.read(0, file.info().tokens, ids.data());
  std::vector<std::string> documents;
  index_t at = 0;
  for (const index_t end : file.read_document_ends(0, file.info().documents)) {
    documents.emplace_back(ids.begin() + at, ids.begin() + end);
    at = end;
  }
  CHECK(at == file.info().tokens);
  return documents;
}

/// Files of every kind: two of lines, one of them compressed, two of text.
std::vector<std::string> many_texts(const ScratchFolder& folder, std::vector<std::string>& texts) {
  std::mt19937 random(4);
  const auto word = [&] {
    return std::string(1 + random() % 50, static_cast<char>('a' + random() % 26));
  };
  std::string lines, more;
  for (int n = 0; n < 500; ++n) {
    texts.push_back(word());
    lines += json(texts.back()) + (n % 50 == 0 ? "\n  \n" : "");
  }
  for (int n = 0; n < 200; ++n) {
    texts.push_back(word());
    more += json(texts.back());
  }
  more.pop_back();  // no end of line behind the last one
  const std::string at = folder.path() + "/in/";
  write(at + "a.jsonl", lines);
  write(at + "b.jsonl.zst", packed(more));
  for (const char* name : {"c.txt", "d.txt"}) {
    std::string text;
    for (int n = 0; n < 300; ++n) text += word() + "\n";
    texts.push_back(text);
    write(at + name, text);
  }
  return {at};
}

std::string whole_file(const std::string& path) { return read_text_file(path); }

}  // namespace

TEST_CASE("documents are lines of JSONL and files of text, whoever tokenizes them") {
  const ScratchFolder folder("tokenize");
  std::vector<std::string> texts;
  const auto inputs = many_texts(folder, texts);
  TokenizeOptions options;
  const std::string out = folder.path() + "/out/";
  const TokenizeResult once = tokenize_corpus(inputs, out + "one", options);
  CHECK(documents_of(once.train_path) == texts);
  CHECK(once.documents == std::ssize(texts));
  CHECK(once.valid_path.empty());
  CHECK(!path_exists(out + "one.parts"));
  // Parts of any size, in threads, in ranks: the same file.
  const std::string expected = whole_file(once.train_path);
  for (const index_t bytes : {57, 1000, 5000}) {
    CAPTURE(bytes);
    options.part_bytes = bytes;
    options.threads = 3;
    const TokenizeResult result = tokenize_corpus(inputs, out + "parts", options);
    CHECK(result.parts > 30000 / bytes / 2);
    CHECK((whole_file(result.train_path) == expected));  // too long to be shown
  }
  options.threads = 1;
  run_local_ranks(3, [&](Communicator& world) {
    (void)tokenize_corpus(world, inputs, out + "ranks", options);
  });
  CHECK((whole_file(out + "ranks-train.h5") == expected));
}

TEST_CASE("a share for validation: lines one by one, the end of the texts") {
  const ScratchFolder folder("tokenize_valid");
  std::vector<std::string> texts;
  const auto inputs = many_texts(folder, texts);
  TokenizeOptions options;
  options.valid_fraction = 0.25;
  options.part_bytes = 700;
  const TokenizeResult result = tokenize_corpus(inputs, folder.path() + "/out", options);
  auto train = documents_of(result.train_path), valid = documents_of(result.valid_path);
  // c.txt stays whole, half of d.txt goes.
  CHECK(train.back() + valid.back() == texts.back());
  CHECK_THAT(static_cast<double>(valid.back().size()) / static_cast<double>(texts.back().size()),
             Catch::Matchers::WithinAbs(0.5, 0.05));
  CHECK(train[train.size() - 2] == texts[texts.size() - 2]);
  CHECK(std::abs(std::ssize(valid) - 176) < 40);
  // Every line is on one side, and the order is kept.
  train.resize(train.size() - 2);
  valid.pop_back();
  texts.resize(700);
  std::vector<std::string> merged;
  std::size_t t = 0, v = 0;
  for (const std::string& text : texts) {
    if (t < train.size() && train[t] == text) {
      merged.push_back(train[t++]);
    } else if (v < valid.size()) {
      merged.push_back(valid[v++]);
    }
  }
  CHECK(merged == texts);
}

TEST_CASE("prompts count in no loss, completions do") {
  const ScratchFolder folder("tokenize_pairs");
  const std::string at = folder.path() + "/";
  write(at + "p.jsonl", "{\"q\":\"ab\",\"a\":\"xyz\"}\n{\"a\":\"!\",\"q\":\"\"}\n");
  TokenizeOptions options;
  options.fields = {"", "q", "a"};
  const TokenizeResult result = tokenize_corpus({at + "p.jsonl"}, at + "out", options);
  CHECK(documents_of(result.train_path) == std::vector<std::string>{"abxyz", "!"});
  std::vector<std::uint8_t> counts(6);
  TokenFileReader(result.train_path).read_counts(0, 6, counts.data());
  CHECK(counts == std::vector<std::uint8_t>{0, 0, 1, 1, 1, 1});
  CHECK(make_token_source({result.train_path})->bytes_per_token() == 0);
}

TEST_CASE("a bad line is named with file and number, or left out and counted") {
  const ScratchFolder folder("tokenize_bad");
  const std::string at = folder.path() + "/";
  std::string text;
  for (int n = 1; n <= 1000; ++n)
    text += n == 517 ? std::string("{\"text\": broken}\n") : n == 800 ? "{}\n" : json("t");
  write(at + "t.jsonl", text);
  write(at + "t2.jsonl.zst", packed(text));
  for (const std::string name : {"t.jsonl", "t2.jsonl.zst"}) {
    for (const index_t bytes : {300, 1 << 20}) {
      TokenizeOptions options;
      options.part_bytes = bytes;
      options.threads = 2;
      try {
        (void)tokenize_corpus({at + name}, at + "out", options);
        FAIL("accepted");
      } catch (const Error& error) {
        CHECK(error.code() == ExitCode::config);
        CHECK_THAT(error.what(), contains(name + ":517: not JSON"));
      }
      std::filesystem::remove_all(at + "out.parts");
      options.skip_bad_lines = true;
      const TokenizeResult result = tokenize_corpus({at + name}, at + "out", options);
      CHECK(result.bad_lines == 2);
      CHECK_THAT(result.first_bad_line, contains(name + ":517: not JSON"));
      CHECK(result.train_tokens == 998);
    }
  }
  TokenizeOptions options;
  options.line_bytes = 100;
  write(at + "long.jsonl", json("a") + json(std::string(200, 'x')));
  CHECK_THROWS_WITH(tokenize_corpus({at + "long.jsonl"}, at + "out", options),
                    contains("long.jsonl:2: a line of more than"));
  std::vector<std::string> faults(2);
  run_local_ranks(2, [&](Communicator& world) {
    try {
      (void)tokenize_corpus(world, {at + "t.jsonl"}, at + "out", {});
    } catch (const AgreedError& error) {
      faults[static_cast<std::size_t>(world.rank())] = error.what();
    }
  });
  CHECK_THAT(faults[1], contains("t.jsonl:517: not JSON"));
}

TEST_CASE("finished parts of a killed command are taken when inputs and settings are the same") {
  const ScratchFolder folder("tokenize_resume");
  std::vector<std::string> texts;
  const auto inputs = many_texts(folder, texts);
  const std::string out = folder.path() + "/out";
  TokenizeOptions options;
  options.part_bytes = 2000;
  const TokenizeResult whole = tokenize_corpus(inputs, folder.path() + "/whole", options);
  // As a killed command leaves them: some parts, made by the same function.
  const auto leave_parts = [&](const TokenizeOptions& of) {
    const auto tokenizer = make_byte_tokenizer();
    const TokenizePlan plan = plan_parts(list_texts(inputs), of, *tokenizer, {});
    std::filesystem::create_directories(out + ".parts");
    for (std::size_t n = 0; n < plan.parts.size(); n += 2)
      tokenize_part(plan, plan.parts[n], of, *tokenizer, out + ".parts");
    return (std::ssize(plan.parts) + 1) / 2;
  };
  const index_t left = leave_parts(options);
  TokenizeResult result = tokenize_corpus(inputs, out, options);
  CHECK(result.parts_reused == left);
  CHECK(result.parts == whole.parts);
  CHECK((whole_file(result.train_path) == whole_file(whole.train_path)));

  // Other settings, or another text: not a part of theirs.
  leave_parts(options);
  TokenizeOptions other = options;
  other.document_begin = true;
  CHECK(tokenize_corpus(inputs, out, other).parts_reused == 0);
  leave_parts(options);
  std::string changed = texts.back();  // of the same size
  changed.front() = '#';
  write(folder.path() + "/in/d.txt", changed);
  const auto file_time = std::filesystem::last_write_time(folder.path() + "/in/d.txt");
  std::filesystem::last_write_time(folder.path() + "/in/d.txt",
                                   file_time + std::chrono::seconds(2));
  result = tokenize_corpus(inputs, out, options);
  CHECK(result.parts_reused > 0);
  CHECK(result.parts_reused < left);
  CHECK(documents_of(result.train_path).back() == changed);
}

TEST_CASE("lines of text can be documents, and begin and end marks stand where they are wanted") {
  const ScratchFolder folder("tokenize_lines");
  const std::string at = folder.path() + "/";
  write(at + "t.txt", "one\ntwo\n\nthree");
  TokenizeOptions options;
  options.document_lines = true;
  const TokenizeResult result = tokenize_corpus({at + "t.txt"}, at + "out", options);
  CHECK(documents_of(result.train_path) == std::vector<std::string>{"one", "two", "three"});
}

TEST_CASE("formats that cannot keep which tokens are a prompt's are refused for prompts") {
  const ScratchFolder folder("tokenize_prompts");
  const std::string at = folder.path() + "/";
  write(at + "t.jsonl", "{\"q\":\"a\",\"a\":\"b\"}\n");
  TokenizeOptions options;
  options.fields.prompt = "q";
  options.fields.completion = "a";
  for (const TokenOutput output : {TokenOutput::megatron, TokenOutput::llmc}) {
    options.output = output;
    try {
      (void)tokenize_corpus({at + "t.jsonl"}, at + "out", options);
      FAIL("it was taken");
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::config);
    }
  }
  options.output = TokenOutput::hdf5;
  CHECK(tokenize_corpus({at + "t.jsonl"}, at + "out", options).documents == 1);
}

TEST_CASE("pieces of a long text, and a completion behind its prompt, begin no text") {
  const ScratchFolder folder("tokenize_pieces");
  const std::string at = folder.path() + "/";
  std::string text;
  for (int n = 0; text.size() < (std::size_t{5} << 18); ++n)
    text += "stone " + std::to_string(n) + "\n";
  write(at + "long.txt", text);
  write(at + "pair.jsonl", "{\"q\":\"stone\\n\",\"a\":\"bread\"}\n");
  TokenizeOptions options;
  // Puts a space before a text.
  options.model_file = std::string(T3D_TEST_SOURCE) + "/reference/tokenizers/llama2.json";
  options.document_end = false;
  options.part_bytes = 1 << 19;
  const auto tokenizer = load_tokenizer(options.model_file);
  const auto ids_of = [&](const std::string& input) {
    const TokenizeResult result = tokenize_corpus({at + input}, at + "out", options);
    std::vector<std::int32_t> ids(static_cast<std::size_t>(result.train_tokens));
    TokenFileReader(result.train_path).read(0, result.train_tokens, ids.data());
    return ids;
  };
  CHECK((ids_of("long.txt") == tokenizer->encode(text)));
  options.fields.prompt = "q";
  options.fields.completion = "a";
  CHECK(ids_of("pair.jsonl") == tokenizer->encode("stone\nbread"));
}

TEST_CASE("documents end with the id that the files of the model say, or the user") {
  const ScratchFolder folder("tokenize_eos");
  const std::string at = folder.path() + "/";
  write(at + "t.jsonl", json("a a") + json("a"));
  const auto token = [](int id, const std::string& text) {
    return "{\"id\":" + std::to_string(id) + ",\"content\":\"" + text +
           "\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,"
           "\"special\":true}";
  };
  write(at + "m/tokenizer.json",
        "{\"added_tokens\":[" + token(0, "<|endoftext|>") + "," + token(2, "<|im_end|>") +
            "],\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"},\"model\":{\"type\":\"WordLevel\","
            "\"unk_token\":\"a\",\"vocab\":{\"<|endoftext|>\":0,\"a\":1,\"<|im_end|>\":2}}}");
  write(at + "m/generation_config.json", "{\"eos_token_id\":[2,0]}");
  TokenizeOptions options;
  options.model_file = at + "m";
  const auto ends = [&] {
    (void)tokenize_corpus({at + "t.jsonl"}, at + "out", options);
    TokenFileReader file(at + "out-train.h5");
    std::vector<std::int32_t> ids(5);
    file.read(0, 5, ids.data());
    CHECK(ids == std::vector<std::int32_t>{1, 1, ids[2], 1, ids[2]});
    return std::pair{ids[2], file.info().special.ends};
  };
  using Ends = std::pair<std::int32_t, std::vector<std::int32_t>>;
  CHECK(ends() == Ends{2, {2, 0}});
  options.model_file = at + "out-train.h5";  // a token file has its own
  CHECK(ends() == Ends{2, {2, 0}});
  options.document_eos = "<|endoftext|>";
  CHECK(ends() == Ends{0, {2, 0}});
  options.document_eos = "1";
  CHECK(ends().first == 1);
  options.document_eos = "none";
  CHECK_THROWS_AS(ends(), Error);
}

TEST_CASE("characters that this system's Unicode lacks are counted, and its version is kept") {
  const ScratchFolder folder("tokenize_unicode");
  const std::string at = folder.path() + "/";
  // U+0378 is assigned in no version so far; U+FFFE is no character in any.
  write(at + "t.jsonl", json("a \xCD\xB8") + json("\xEF\xBF\xBE \xC3\xA9 \xCD\xB8"));
  TokenizeOptions options;
  const auto notes = [&] { return tokenize_corpus({at + "t.jsonl"}, at + "out", options).notes; };
  const auto kept = [&] { return TokenFileReader(at + "out-train.h5").info().unicode; };
  CHECK(notes().empty());
  CHECK(kept().empty());
  options.model_file = std::string(T3D_TEST_SOURCE) + "/reference/tokenizers/llama2.json";
  const std::vector<std::string> told = notes();
  REQUIRE(told.size() == 1);
  CHECK_THAT(told[0], contains("2 characters") && contains("U+0378"));
  CHECK_THAT(kept(), Catch::Matches("[0-9]+\\.[0-9]"));
}
