// Cards of a corpus's files: as a message and back, and read by one rank for all.
#include "data/token_card.hpp"

#include <fstream>

#include "core/error.hpp"
#include "data/token_formats.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"

using namespace t3d;
using t3d::test::ScratchFolder;

namespace {

TokenCard token_file_card(const std::string& path, const std::string& model) {
  TokenCard card{path, 12345, 0, 0, {}};
  card.header.info = {
      8192, "sentencepiece", model, "a book\nof two lines", 20000, 5000, {1, 2, -1, 0}, 7, true};
  card.header.document_crcs = {5};
  card.header.loss_crcs = {6, 7};
  card.header.block_crcs = {0, 1, 0xffffffffU};
  card.header.checksum = 0xfffffff0U;
  return card;
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace

TEST_CASE("cards arrive as they were sent") {
  const std::string model("a\0model", 7);
  const std::vector<TokenCard> sent{token_file_card("one.h5", model),
                                    token_file_card("two.h5", model),
                                    token_file_card("three.h5", ""), TokenCard{"raw", 8, 4, 2, {}}};
  const std::vector<TokenCard> cards = cards_of_text(text_of_cards(sent));
  REQUIRE(cards.size() == sent.size());
  for (std::size_t n = 0; n < cards.size(); ++n) {
    CHECK(cards[n].path == sent[n].path);
    CHECK(cards[n].bytes == sent[n].bytes);
    CHECK(cards[n].header_bytes == sent[n].header_bytes);
    CHECK(cards[n].id_bytes == sent[n].id_bytes);
    CHECK(cards[n].header.block_crcs == sent[n].header.block_crcs);
    CHECK(cards[n].header.document_crcs == sent[n].header.document_crcs);
    CHECK(cards[n].header.loss_crcs == sent[n].header.loss_crcs);
    CHECK(cards[n].header.info.special == sent[n].header.info.special);
    CHECK(cards[n].header.info.partial_loss == sent[n].header.info.partial_loss);
    CHECK(cards[n].header.checksum == sent[n].header.checksum);
    CHECK(open_token_file(cards[n])->files() == open_token_file(sent[n])->files());
    CHECK(open_token_file(cards[n])->describe() == open_token_file(sent[n])->describe());
    CHECK(open_token_file(cards[n])->tokenizer_model() == sent[n].header.info.model);
  }
  CHECK(cards_of_text("").empty());
  const std::string text = text_of_cards(sent);
  CHECK_THROWS(cards_of_text(text.substr(0, text.size() - 1)));
  CHECK(text.size() < text_of_cards({sent[0], sent[2]}).size() + text_of_cards({sent[3]}).size() +
                          text_of_cards({sent[1]}).size());  // the model is there once
}

TEST_CASE("one rank reads the files' cards, and all read their tokens") {
  const ScratchFolder folder("shared");
  write_text(folder.path() + "/text", "abcdef");
  std::vector<std::string> read(4), refused(4);
  run_local_ranks(4, [&](Communicator& world) {
    const auto own = static_cast<std::size_t>(world.rank());
    const auto mates = ranks_of_folder(world);
    // A name that the other ranks would not find: they do not look.
    const std::string name = folder.path() + (own == 0 ? "/te*t" : "/nowhere");
    const auto source =
        make_token_source(share_token_cards(world, *mates, {name}, TokenFormat::bytes));
    std::vector<std::int32_t> ids(6);
    source->read(0, 6, ids.data());
    read[own].assign(ids.begin(), ids.end());
    try {
      (void)share_token_cards(world, *mates, {folder.path() + "/nowhere"}, TokenFormat::bytes);
    } catch (const AgreedError& error) {
      refused[own] = error.code() == ExitCode::no_input ? error.what() : "another code";
    }
  });
  for (const std::string& text : read) CHECK(text == "abcdef");
  for (const std::string& text : refused)
    CHECK_THAT(text, Catch::Contains("/nowhere does not exist (rank 0, node "));
}

TEST_CASE("a file that changes before it is read is an error") {
  const ScratchFolder folder("changed");
  const std::string path = folder.path() + "/text";
  write_text(path, "abcdef");
  const auto source = open_token_file(read_token_card(path, TokenFormat::bytes));
  write_text(path, "abc");
  std::int32_t id = 0;
  CHECK_THROWS_WITH(source->read(0, 1, &id), path + " has 3 bytes, and had 6 when the job started");
}
