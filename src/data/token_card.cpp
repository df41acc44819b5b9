#include "data/token_card.hpp"

#include <cstring>
#include <filesystem>
#include <optional>

#include "comm/agree.hpp"
#include "comm/placement.hpp"
#include "data/file_list.hpp"
#include "data/token_formats.hpp"

namespace t3d {
namespace {

/// Numbers and texts one behind the other, as ranks of one kind of machine lay them out.
class Packer {
 public:
  void number(index_t value) { text_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void bytes(const void* data, std::size_t count) {
    number(static_cast<index_t>(count));
    text_.append(static_cast<const char*>(data), count);
  }
  void word(const std::string& text) { bytes(text.data(), text.size()); }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

class Unpacker {
 public:
  explicit Unpacker(const std::string& text) : text_(text) {}
  index_t number() {
    index_t value = 0;
    std::memcpy(&value, next(sizeof value), sizeof value);
    return value;
  }
  std::string word() {
    const auto count = static_cast<std::size_t>(number());
    return {next(count), count};
  }
  [[nodiscard]] bool done() const { return at_ == text_.size(); }

 private:
  const char* next(std::size_t count) {
    T3D_CHECK(count <= text_.size() - at_, "{} bytes of a message of {}", count, text_.size());
    at_ += count;
    return text_.data() + at_ - count;
  }
  const std::string& text_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<TokenCard> read_token_cards(const std::vector<std::string>& patterns,
                                        TokenFormat format) {
  std::vector<TokenCard> cards;
  for (const std::string& path : list_files(patterns))
    cards.push_back(read_token_card(path, format));
  return cards;
}

std::string text_of_cards(const std::vector<TokenCard>& cards) {
  Packer out;
  const std::string* model = nullptr;  // of the card before
  for (const TokenCard& card : cards) {
    const TokenFileInfo& info = card.header.info;
    out.word(card.path);
    for (const index_t value : {card.bytes, card.header_bytes, card.id_bytes, info.vocab,
                                info.text_bytes, info.tokens, index_t{card.header.checksum}})
      out.number(value);
    out.word(info.tokenizer);
    out.word(info.source);
    const bool same = model != nullptr && *model == info.model;
    out.number(same ? 1 : 0);
    if (!same) out.word(info.model);
    model = &info.model;
    out.bytes(card.header.block_crcs.data(), card.header.block_crcs.size() * sizeof(std::uint32_t));
  }
  return out.take();
}

std::vector<TokenCard> cards_of_text(const std::string& text) {
  Unpacker in(text);
  std::vector<TokenCard> cards;
  while (!in.done()) {
    TokenCard card;
    TokenFileInfo& info = card.header.info;
    card.path = in.word();
    for (index_t* value : {&card.bytes, &card.header_bytes, &card.id_bytes, &info.vocab,
                           &info.text_bytes, &info.tokens})
      *value = in.number();
    card.header.checksum = static_cast<std::uint32_t>(in.number());
    info.tokenizer = in.word();
    info.source = in.word();
    info.model = in.number() != 0 ? cards.back().header.info.model : in.word();
    const std::string table = in.word();
    card.header.block_crcs.resize(table.size() / sizeof(std::uint32_t));
    if (!table.empty()) std::memcpy(card.header.block_crcs.data(), table.data(), table.size());
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
    if (mates.rank() == 0) text = text_of_cards(read_token_cards(patterns, format));
  } catch (const std::exception& error) {
    fault = on_this_rank(world, as_error(error));
  }
  agree(world, fault);
  return cards_of_text(broadcast_text(mates, text));
}

}  // namespace t3d
