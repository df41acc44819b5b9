// Texts as they lie: lists of files, compressed ones, lines, and places where a text may be cut.
#include <sys/stat.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "core/error.hpp"
#include "data/text/input_stream.hpp"
#include "data/text/line_reader.hpp"
#include "data/text/text_cut.hpp"
#include "data/text/text_input.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"

using namespace t3d;
using t3d::test::contains;
using t3d::test::ScratchFolder;

namespace {

void write(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::string packed(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

std::string read_all(const std::string& path, index_t each) {
  const auto stream = open_stream(path);
  std::string text, piece(static_cast<std::size_t>(each), '\0');
  for (index_t now = 0; (now = stream->read(piece.data(), each)) > 0;)
    text.append(piece.data(), static_cast<std::size_t>(now));
  return text;
}

std::string long_text() {
  std::mt19937 random(2);
  std::string text;
  while (text.size() < 700000) {
    text += std::string(random() % 90, static_cast<char>('a' + random() % 26));
    text += random() % 7 == 0 ? "\n\n  " : "\n";
  }
  return text;
}

std::vector<std::string> names(const std::vector<std::string>& patterns) {
  std::vector<std::string> all;
  for (const TextInput& input : list_texts(patterns))
    all.push_back(std::filesystem::path(input.path).filename().string() +
                  (input.lines ? " lines" : "") + (input.compressed ? " packed" : ""));
  return all;
}

}  // namespace

TEST_CASE("names, patterns and folders mean files in one order") {
  const ScratchFolder folder("texts");
  const std::string at = folder.path() + "/";
  for (const char* name : {"d/b.txt", "d/a.jsonl", "d/z/c.jsonl.zst", "d/.git/x", "d/.hidden",
                           "d/m/n.txt.zst", "t[1].txt", "u.ndjson"})
    write(at + name, "x");
  CHECK(names({at + "d"}) == std::vector<std::string>{"a.jsonl lines", "b.txt", "n.txt.zst packed",
                                                      "c.jsonl.zst lines packed"});
  CHECK(names({at + "u*", at + "t[1].txt"}) ==
        std::vector<std::string>{"u.ndjson lines", "t[1].txt"});
  // Links are followed, once; one that leads nowhere is no text less without a word.
  std::filesystem::create_directory_symlink("../../d", at + "d/m/round");
  std::filesystem::create_directory_symlink("z", at + "d/a");
  std::filesystem::create_directories(at + "linked");
  std::filesystem::create_directory_symlink("../d/z", at + "linked/z");
  CHECK(list_texts({at + "d"}).size() == 4);
  CHECK(list_texts({at + "d"}).back().path == at + "d/z/c.jsonl.zst");
  CHECK(names({at + "linked"}) == std::vector<std::string>{"c.jsonl.zst lines packed"});
  std::filesystem::create_symlink("nowhere.txt", at + "linked/gone.txt");
  CHECK_THROWS_WITH(list_texts({at + "linked"}),
                    contains("gone.txt is a link to a file that is not there"));
  write(at + "e/t.parquet", "x");
  CHECK_THROWS_WITH(list_texts({at + "e"}), contains("t.parquet is neither text nor JSONL"));
  std::filesystem::create_directories(at + "none");
  for (const char* name : {"none", "absent", "abs*"}) {
    try {
      (void)list_texts({at + name});
      FAIL(name);
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::no_input);
    }
  }
}

TEST_CASE("compressed files read as what was compressed, and a cut one is an error") {
  const ScratchFolder folder("packed");
  const std::string at = folder.path() + "/", text = long_text();
  write(at + "plain", text);
  write(at + "one.zst", packed(text));
  write(at + "two.zst", packed(text.substr(0, 1000)) + packed("") + packed(text.substr(1000)));
  for (const index_t each : {1, 100, 100000}) {
    if (each > 1) CHECK(read_all(at + "plain", each) == text);
    if (each > 1) CHECK(read_all(at + "one.zst", each) == text);
    CHECK(read_all(at + "two.zst", each) == text);
  }
  const std::string whole = packed(text);
  for (const std::size_t size :
       {std::size_t{3}, std::size_t{20}, whole.size() / 2, whole.size() - 1}) {
    write(at + "cut.zst", whole.substr(0, size));
    try {
      (void)read_all(at + "cut.zst", 1000);
      FAIL(size);
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::io);
      CHECK_THAT(error.what(), contains(at + "cut.zst"));
    }
  }
  write(at + "no.zst", "this is plain text");
  CHECK_THROWS_WITH(read_all(at + "no.zst", 10), contains("no zstd file"));
  write(at + "empty.zst", "");
  CHECK(read_all(at + "empty.zst", 10).empty());
}

TEST_CASE("lines come with their places, and one that is too long is passed over") {
  const ScratchFolder folder("lines");
  const std::string path = folder.path() + "/t";
  const auto lines_of = [&](const std::string& text, index_t most) {
    write(path, text);
    LineReader reader(open_stream(path), 0, most);
    std::vector<std::string> lines;
    while (const auto line = reader.next()) {
      CHECK(text.substr(static_cast<std::size_t>(line->offset), line->text.size()) == line->text);
      lines.push_back(std::string(line->text) + (line->too_long ? "..." : ""));
    }
    return lines;
  };
  using Lines = std::vector<std::string>;
  CHECK(lines_of("", 10).empty());
  CHECK(lines_of("a", 10) == Lines{"a"});
  CHECK(lines_of("a\r\n\nb\n", 10) == Lines{"a", "", "b"});
  CHECK(lines_of("1234567890\n12345678901\n1", 10) == Lines{"1234567890", "12345678901...", "1"});
  const std::string huge(900000, 'x');
  CHECK(lines_of("a\n" + huge + "\nb\n", 500000) == Lines{"a", std::string(100, 'x') + "...", "b"});
  CHECK(lines_of(huge, 500000) == Lines{std::string(100, 'x') + "..."});
  CHECK(lines_of("a\n" + huge + "\nb\n", 900000) == Lines{"a", huge, "b"});
  write(path, "a\nbc\n\nd\n");
  CHECK(line_number(path, 0) == 1);
  CHECK(line_number(path, 2) == 2);
  CHECK(line_number(path, 6) == 4);
}

TEST_CASE("a text is cut where no white space is torn apart") {
  CHECK(text_cut("ab\ncd") == 3);
  CHECK(text_cut("ab\ncd\n\n  e\n") == 3);
  CHECK(text_cut("ab\n\n") == 4);  // nothing better
  CHECK(text_cut("ab\xC3") == 2);
  const ScratchFolder folder("cut");
  const std::string path = folder.path() + "/t", text = long_text();
  write(path, text);
  const auto size = std::ssize(text);
  for (const index_t offset : {index_t{0}, index_t{1}, index_t{5000}, size - 1, size, size + 5}) {
    const index_t cut = cut_of_file(path, size, offset);
    CHECK(cut >= std::min(offset, size));
    if (cut == 0 || cut == size) continue;
    CHECK(text[static_cast<std::size_t>(cut - 1)] == '\n');
    CHECK(text[static_cast<std::size_t>(cut)] >= 'a');
  }
  for (const index_t most : {70000, 1 << 20}) {
    std::string again;
    for_pieces(*open_stream(path), size - 10, most, [&](std::string_view piece) {
      CHECK(std::ssize(piece) <= most);
      CHECK((again.empty() || (again.back() == '\n' && piece.front() >= 'a')));
      again += piece;
    });
    CHECK(again == text.substr(0, text.size() - 10));
  }
  write(path, std::string(300000, '\n'));
  CHECK(cut_of_file(path, 300000, 1000) == 1000);
  std::string euro;
  for (int n = 0; n < 100000; ++n) euro += "\u20AC";
  write(path, euro);
  CHECK(cut_of_file(path, 300000, 1000) == 1002);
}
