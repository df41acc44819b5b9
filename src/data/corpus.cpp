#include "data/corpus.hpp"

#include <algorithm>

namespace t3d {
namespace {

bool continues_character(char letter) {
  return (static_cast<unsigned char>(letter) & 0xC0U) == 0x80U;
}

}  // namespace

Corpus::Corpus(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    files_.push_back(std::make_unique<FileReader>(path));
    ends_.push_back(bytes() + files_.back()->size());
  }
}

std::string Corpus::read(index_t offset, index_t bytes) const {
  std::string text(static_cast<std::size_t>(bytes), '\0');
  auto file = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), offset) -
                                       ends_.begin());
  for (index_t done = 0; done < bytes; ++file) {
    const index_t now = std::min(bytes - done, ends_[file] - offset - done);
    files_[file]->read_at(offset + done - (ends_[file] - files_[file]->size()), text.data() + done,
                          now);
    done += now;
  }
  return text;
}

std::string Corpus::piece(index_t offset, index_t end, index_t most) const {
  std::string text = read(offset, std::min(most, end - offset));
  if (offset + std::ssize(text) < end) text.resize(clean_cut(text));
  return text;
}

index_t Corpus::line_start(index_t offset) const {
  constexpr index_t kLook = 1 << 16;
  if (offset <= 0 || offset >= bytes()) return std::clamp<index_t>(offset, 0, bytes());
  const std::string text = read(offset - 1, std::min(kLook, bytes() - offset + 1));
  if (const auto newline = text.find('\n'); newline != std::string::npos)
    return offset + static_cast<index_t>(newline);
  std::size_t at = 1;
  while (at < text.size() && continues_character(text[at])) ++at;
  return offset + static_cast<index_t>(at) - 1;
}

std::size_t clean_cut(std::string_view text) {
  if (const auto newline = text.rfind('\n'); newline != std::string_view::npos) return newline + 1;
  std::size_t cut = text.size();
  for (std::size_t at = text.size(); at > 0 && text.size() - at < 4;) {
    if (continues_character(text[--at])) continue;
    const auto lead = static_cast<unsigned char>(text[at]);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (at + length > text.size() && at > 0) cut = at;
    break;
  }
  return cut;
}

}  // namespace t3d
