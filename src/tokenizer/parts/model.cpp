#include "tokenizer/parts/model.hpp"

#include "tokenizer/parts/byte_level.hpp"

namespace t3d::tok {

void Model::encode_bytes(std::string_view word, std::vector<std::int32_t>& ids) const {
  std::string letters;
  append_letters(word, letters);
  encode(letters, ids);
}

std::string byte_token(std::uint8_t byte) { return fmt::format("<0x{:02X}>", byte); }

std::unique_ptr<Model> make_model(const JsonPart& part) {
  // Files of the first years have no type: then the keys say which it is.
  std::string type = part.text_or("type", "");
  if (type.empty()) {
    if (part.has("merges"))
      type = "BPE";
    else if (part.has("unk_id"))
      type = "Unigram";
    else if (part.has("max_input_chars_per_word"))
      type = "WordPiece";
  }
  if (type == "BPE") return make_bpe(part);
  if (type == "Unigram") return make_unigram(part);
  if (type == "WordPiece") return make_wordpiece(part);
  if (type == "WordLevel") return make_wordlevel(part);
  part.fail("models of type {} are not known here", in_quotes(type));
}

}  // namespace t3d::tok
