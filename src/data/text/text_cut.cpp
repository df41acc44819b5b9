#include "data/text/text_cut.hpp"

#include <algorithm>

#include "data/corpus.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

bool is_space(char letter) {
  return letter == ' ' || letter == '\n' || letter == '\t' || letter == '\r' || letter == '\v' ||
         letter == '\f';
}

bool continues_character(char letter) {
  return (static_cast<unsigned char>(letter) & 0xC0U) == 0x80U;
}

}  // namespace

std::size_t text_cut(std::string_view text) {
  constexpr std::size_t kLook = std::size_t{1} << 16;
  const std::size_t lowest = text.size() - std::min(text.size(), kLook);
  for (std::size_t at = text.size(); at-- > lowest + 1;)
    if (text[at - 1] == '\n' && !is_space(text[at])) return at;
  return clean_cut(text);
}

index_t cut_of_file(const std::string& path, index_t bytes, index_t offset) {
  constexpr index_t kLook = index_t{1} << 16;
  if (offset <= 0 || offset >= bytes) return std::clamp<index_t>(offset, 0, bytes);
  const FileReader file(path);
  std::string text(static_cast<std::size_t>(std::min(kLook, bytes - offset + 1)), '\0');
  file.read_at(offset - 1, text.data(), std::ssize(text));
  for (std::size_t at = 1; at < text.size(); ++at)
    if (text[at - 1] == '\n' && !is_space(text[at])) return offset + static_cast<index_t>(at) - 1;
  if (const std::size_t newline = text.find('\n'); newline != std::string::npos)
    return offset + static_cast<index_t>(newline);
  std::size_t at = 1;
  while (at < text.size() && continues_character(text[at])) ++at;
  return offset + static_cast<index_t>(at) - 1;
}

void for_pieces(InputStream& stream, index_t bytes, index_t most,
                const std::function<void(std::string_view)>& take) {
  std::string text;
  bool more = true;
  while (more) {
    const auto had = text.size();
    const index_t wanted = std::min(bytes, most - static_cast<index_t>(had));
    text.resize(had + static_cast<std::size_t>(wanted));
    index_t filled = 0;
    while (filled < wanted) {
      const index_t now = stream.read(text.data() + had + filled, wanted - filled);
      if (now == 0) break;
      filled += now;
    }
    text.resize(had + static_cast<std::size_t>(filled));
    bytes -= filled;
    more = filled == wanted && bytes > 0;
    const std::size_t cut = more ? std::max<std::size_t>(text_cut(text), 1) : text.size();
    if (cut > 0) take(std::string_view(text).substr(0, cut));
    text.erase(0, cut);
  }
}

}  // namespace t3d
