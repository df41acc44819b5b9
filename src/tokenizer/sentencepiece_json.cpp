#include "tokenizer/sentencepiece_json.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <vector>

#include "tokenizer/parts/utf8.hpp"

namespace t3d {
namespace {

constexpr std::string_view kMark = "\xE2\x96\x81";  // U+2581, a space in SentencePiece's pieces

// The library installs no header of its model's messages, and few of their fields are needed. They
// are read from the bytes: a key (number * 8 + type), then a value.
struct MessageField {
  std::uint64_t number = 0;
  std::uint64_t value = 0;  // of integers and floats
  std::string_view bytes;   // of texts and messages
};

class MessageFields {
 public:
  explicit MessageFields(std::string_view message) : rest_(message) {}
  /// False at the end, and at what is no field.
  bool next(MessageField& field) {
    if (rest_.empty()) return false;
    const std::uint64_t key = varint();
    field = MessageField();
    field.number = key >> 3U;
    switch (key & 7U) {
      case 0: field.value = varint(); return true;
      case 1: field.value = fixed(8); return true;
      case 2: field.bytes = take(varint()); return true;
      case 5: field.value = fixed(4); return true;
      default: return false;
    }
  }

 private:
  std::string_view take(std::uint64_t bytes) {
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<std::uint8_t>(take(1)[0]);
      value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
      if (byte < 0x80) break;
    }
    return value;
  }
  std::uint64_t fixed(std::size_t bytes) {
    std::uint64_t value = 0;
    unsigned shift = 0;
    for (const char byte : take(bytes)) {
      value |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(byte)) << shift;
      shift += 8;
    }
    return value;
  }

  std::string_view rest_;
};

enum class PieceType : std::uint8_t { normal = 1, unknown, control, user_defined, unused, byte };

struct ModelPiece {
  std::string text;
  float score = 0;
  PieceType type = PieceType::normal;
};

// Where a field is missing, it has the value that SentencePiece gives it.
struct SentencePieceModel {
  explicit SentencePieceModel(std::string_view model) {
    MessageFields fields(model);
    for (MessageField field; fields.next(field);) {
      if (field.number == 1) add_piece(field.bytes);
      if (field.number == 2) read_trainer(field.bytes);
      if (field.number == 3) read_normalizer(field.bytes);
      if (field.number == 5) read_denormalizer(field.bytes);
    }
  }

  std::vector<ModelPiece> pieces;
  std::uint64_t type = 1;  // of the trainer: its algorithm
  bool bpe = false, byte_fallback = false, space_behind = false;
  bool dummy_prefix = true, fewer_spaces = true, marked_spaces = true, changes_letters = false;

 private:
  void add_piece(std::string_view message) {
    ModelPiece piece;
    MessageFields fields(message);
    for (MessageField field; fields.next(field);) {
      if (field.number == 1) piece.text = field.bytes;
      if (field.number == 2) piece.score = std::bit_cast<float>(std::uint32_t(field.value));
      if (field.number == 3) piece.type = static_cast<PieceType>(field.value);
    }
    pieces.push_back(std::move(piece));
  }
  void read_trainer(std::string_view message) {
    constexpr std::uint64_t kBpe = 2;
    MessageFields fields(message);
    for (MessageField field; fields.next(field);) {
      if (field.number == 3) type = field.value;
      if (field.number == 24) space_behind = field.value != 0;
      if (field.number == 35) byte_fallback = field.value != 0;
    }
    bpe = type == kBpe;
  }
  void read_normalizer(std::string_view message) {
    MessageFields fields(message);
    for (MessageField field; fields.next(field);) {
      if (field.number == 2 && !field.bytes.empty()) changes_letters = true;
      if (field.number == 3) dummy_prefix = field.value != 0;
      if (field.number == 4) fewer_spaces = field.value != 0;
      if (field.number == 5) marked_spaces = field.value != 0;
    }
  }
  void read_denormalizer(std::string_view message) {
    MessageFields fields(message);
    for (MessageField field; fields.next(field);)
      if (field.number == 2 && !field.bytes.empty()) changes_letters = true;
  }
};

bool is_one_character(std::string_view text) {
  return !text.empty() && tok::utf8_step(text, 0).bytes == text.size();
}

bool keeps_text(const SentencePieceModel& model) {
  return !model.dummy_prefix && !model.fewer_spaces && !model.space_behind && model.marked_spaces &&
         !model.changes_letters;
}

/// As train_sentencepiece() has it: the unknown piece first, and no mark but the end of a document,
/// which earlier versions lack.
bool is_trained_here(const SentencePieceModel& model) {
  if (!keeps_text(model) || !model.byte_fallback || model.pieces.empty()) return false;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const ModelPiece& piece = model.pieces[id];
    if ((piece.type == PieceType::unknown) != (id == 0)) return false;
    if (piece.type == PieceType::control && (id != 1 || piece.text != "<eos>")) return false;
  }
  return true;
}

bool has_a_json(const SentencePieceModel& model) {
  if (!model.bpe || !model.byte_fallback || !keeps_text(model)) return false;
  return std::ranges::all_of(model.pieces, [](const ModelPiece& piece) {
    if (!tok::is_utf8(piece.text)) return false;
    switch (piece.type) {
      case PieceType::normal: return piece.text.find(' ') == std::string::npos;
      case PieceType::byte: return true;
      // Of one letter it would be found in texts, which SentencePiece does not do.
      case PieceType::unknown:
      case PieceType::control: return !is_one_character(piece.text);
      default: return false;
    }
  });
}

// Pieces have spaces here, not marks: texts then need no change, and a mark in a text has no piece
// and becomes bytes, as SentencePieceTokenizer has it for models that were trained here. For others
// marks become spaces first.
void write_spaces(std::vector<ModelPiece>& pieces) {
  for (ModelPiece& piece : pieces) {
    if (piece.type != PieceType::normal) continue;
    for (std::size_t at = 0; (at = piece.text.find(kMark, at)) != std::string::npos; ++at)
      piece.text.replace(at, kMark.size(), " ");
  }
}

// SentencePiece joins any two pieces that are a third one together, the third one's score decides,
// and of equal scores the one further left. So every split of a piece is a merge, in the order of
// scores. Two splits of one piece get in each other's way where x y z has x + y == y + z; then
// (x, y), the one further left, must come first: y is both the beginning and the end of the piece.
nlohmann::ordered_json merges_of(const std::vector<ModelPiece>& pieces) {
  std::vector<const ModelPiece*> order;
  std::unordered_map<std::string_view, const ModelPiece*> normal;
  for (const ModelPiece& piece : pieces)
    if (piece.type == PieceType::normal) {
      order.push_back(&piece);
      normal.emplace(piece.text, &piece);
    }
  std::ranges::stable_sort(order, [](auto* a, auto* b) { return a->score > b->score; });
  auto merges = nlohmann::ordered_json::array();
  for (const ModelPiece* piece : order) {
    const std::string_view text = piece->text;
    std::vector<std::size_t> splits;
    for (std::size_t at = 1; at < text.size(); ++at)
      if (normal.contains(text.substr(0, at)) && normal.contains(text.substr(at)))
        splits.push_back(at);
    std::stable_partition(splits.begin(), splits.end(),
                          [&](std::size_t at) { return text.starts_with(text.substr(at)); });
    for (const std::size_t at : splits)
      merges.push_back({std::string(text.substr(0, at)), std::string(text.substr(at))});
  }
  return merges;
}

nlohmann::ordered_json marks_to_spaces() {
  return {{"type", "Replace"}, {"pattern", {{"String", kMark}}}, {"content", " "}};
}

}  // namespace

std::string_view algorithm_of_sentencepiece(std::string_view model) {
  constexpr std::array<std::string_view, 4> kNames{"unigram", "bpe", "word", "char"};
  const std::uint64_t type = SentencePieceModel(model).type;
  return kNames[type >= 1 && type <= kNames.size() ? type - 1 : 0];
}

bool is_like_llamas(std::string_view model) {
  const SentencePieceModel parts(model);
  return parts.bpe && parts.byte_fallback && parts.dummy_prefix && !parts.changes_letters &&
         !parts.space_behind && parts.marked_spaces;
}

SentencePieceSpaces spaces_of_sentencepiece(std::string_view model) {
  const SentencePieceModel parts(model);
  return {parts.fewer_spaces, parts.space_behind, keeps_text(parts), is_trained_here(parts)};
}

std::string json_of_sentencepiece(std::string_view model) {
  using json = nlohmann::ordered_json;
  SentencePieceModel parts(model);
  if (!has_a_json(parts)) return {};
  write_spaces(parts.pieces);
  json vocab = json::object(), added = json::array(), unknown = nullptr;
  // Straight into the list: an ordered object looks through all its keys for each new one.
  auto& ids = vocab.get_ref<json::object_t&>();
  for (std::size_t id = 0; id < parts.pieces.size(); ++id) {
    const ModelPiece& piece = parts.pieces[id];
    ids.emplace_back(piece.text, id);
    if (piece.type == PieceType::unknown) unknown = piece.text;
    if (piece.type != PieceType::control) continue;
    added.push_back({{"id", id},
                     {"content", piece.text},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  const json file{
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", std::move(added)},
      {"normalizer", is_trained_here(parts) ? json() : marks_to_spaces()},
      {"pre_tokenizer", nullptr},
      {"post_processor", nullptr},
      {"decoder",
       {{"type", "Sequence"}, {"decoders", {{{"type", "ByteFallback"}}, {{"type", "Fuse"}}}}}},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", std::move(unknown)},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", false},
        {"byte_fallback", true},
        {"ignore_merges", false},
        {"vocab", std::move(vocab)},
        {"merges", merges_of(parts.pieces)}}}};
  return file.dump() + "\n";
}

}  // namespace t3d
