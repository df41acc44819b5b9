#include "data/token_card.hpp"

#include <array>
#include <cstring>
#include <filesystem>
#include <optional>

#include "comm/agree.hpp"
#include "comm/busy.hpp"
#include "comm/placement.hpp"
#include "data/file_list.hpp"
#include "data/token_formats.hpp"
#include "io/packer.hpp"
#include "tokenizer/special_files.hpp"

namespace t3d {
std::vector<TokenCard> read_token_cards(const std::vector<std::string>& patterns,
                                        TokenFormat format) {
  std::vector<TokenCard> cards;
  for (const std::string& path : list_files(patterns)) {
    TokenCard card = read_token_card(path, format);
    // A pattern may find both files of a pair.
    const bool again = !cards.empty() && cards.back().path == card.path && card.path != path;
    if (!again) cards.push_back(std::move(card));
  }
  return cards;
}

namespace {

/// Every number of a card, in the order of the message.
template <class Card, class Visit>
void visit_numbers(Card& card, const Visit& visit) {
  auto& info = card.header.info;
  visit(card.bytes);
  visit(card.header_bytes);
  visit(card.id_bytes);
  visit(info.vocab);
  visit(info.text_bytes);
  visit(info.tokens);
  visit(info.documents);
  visit(info.partial_loss);
  visit(card.header.checksum);
}

using CrcTable = std::vector<std::uint32_t>;
constexpr std::array kTables{&TokenFileHeader::block_crcs, &TokenFileHeader::document_crcs,
                             &TokenFileHeader::loss_crcs};

}  // namespace

std::string text_of_cards(const std::vector<TokenCard>& cards) {
  Packer out;
  const std::string* model = nullptr;  // of the card before
  for (const TokenCard& card : cards) {
    const TokenFileInfo& info = card.header.info;
    out.add(card.path);
    visit_numbers(card, [&](auto value) { out.add(index_t{value}); });
    out.add(info.tokenizer);
    out.add(info.source);
    out.add(special_text(info.special));
    const bool same = model != nullptr && *model == info.model;
    out.add(index_t{same});
    if (!same) out.add(info.model);
    model = &info.model;
    for (const auto member : kTables) {
      const CrcTable& table = card.header.*member;
      out.add({reinterpret_cast<const char*>(table.data()), table.size() * sizeof table[0]});
    }
  }
  return out.take();
}

std::vector<TokenCard> cards_of_text(const std::string& text) {
  Unpacker in(text);
  std::vector<TokenCard> cards;
  while (in.more()) {
    TokenCard card;
    TokenFileInfo& info = card.header.info;
    card.path = in.text();
    visit_numbers(card, [&](auto& value) {
      value = static_cast<std::remove_reference_t<decltype(value)>>(in.number());
    });
    info.tokenizer = in.text();
    info.source = in.text();
    info.special = special_ids_of_text(in.text());
    info.model = in.number() != 0 ? cards.back().header.info.model : in.text();
    for (const auto member : kTables) {
      CrcTable& table = card.header.*member;
      const std::string packed = in.text();
      table.resize(packed.size() / sizeof table[0]);
      if (!packed.empty()) std::memcpy(table.data(), packed.data(), packed.size());
    }
    cards.push_back(std::move(card));
  }
  return cards;
}

std::unique_ptr<Communicator> ranks_of_folder(Communicator& world) {
  const std::vector<int> nodes = node_of_ranks(world);
  std::error_code ignored;  // a folder that is gone has no name
  const std::vector<std::string> folders =
      all_gather_texts(world, std::filesystem::current_path(ignored).string());
  const auto own = static_cast<std::size_t>(world.rank());
  std::vector<int> mates;
  for (std::size_t rank = 0; rank < nodes.size(); ++rank)
    if (nodes[rank] == nodes[own] && folders[rank] == folders[own])
      mates.push_back(static_cast<int>(rank));
  return world.subgroup(mates, "node");
}

std::vector<TokenCard> share_token_cards(Communicator& world, Communicator& mates,
                                         const std::vector<std::string>& patterns,
                                         TokenFormat format) {
  std::string text;
  std::optional<Error> fault;
  try {
    if (mates.rank() == 0) {
      const BusyScope busy("reading the token files");
      text = text_of_cards(read_token_cards(patterns, format));
    }
  } catch (const std::exception& error) {
    fault = on_this_rank(world, as_error(error));
  }
  agree(world, fault);
  return cards_of_text(broadcast_text(mates, text));
}

}  // namespace t3d
