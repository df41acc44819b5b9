#include "io/deflate.hpp"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "core/error.hpp"

namespace t3d {
namespace {

constexpr int kLevel = 3;  // the smallest output
constexpr std::size_t kPiece = std::size_t{1} << 30;

std::uint8_t* bytes_of(std::string_view text) {
  // The library takes a pointer that it does not write through.
  return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));
}

}  // namespace

std::string deflated(std::string_view bytes) {
  isal_zstream stream;
  isal_deflate_init(&stream);
  std::vector<std::uint8_t> work(ISAL_DEF_LVL3_EXTRA_LARGE);
  std::array<std::uint8_t, 1 << 16> part{};
  stream.level = kLevel;
  stream.level_buf = work.data();
  stream.level_buf_size = static_cast<std::uint32_t>(work.size());
  stream.gzip_flag = IGZIP_DEFLATE;
  std::string out;
  do {
    if (stream.avail_in == 0 && stream.end_of_stream == 0) {
      const std::string_view piece = bytes.substr(0, kPiece);
      bytes.remove_prefix(piece.size());
      stream.next_in = bytes_of(piece);
      stream.avail_in = static_cast<std::uint32_t>(piece.size());
      stream.end_of_stream = bytes.empty() ? 1 : 0;
    }
    stream.next_out = part.data();
    stream.avail_out = static_cast<std::uint32_t>(part.size());
    const int status = isal_deflate(&stream);
    if (status != COMP_OK) throw_error(ExitCode::internal, "deflate fails with {}", status);
    out.append(reinterpret_cast<const char*>(part.data()), part.size() - stream.avail_out);
  } while (stream.internal_state.state != ZSTATE_END);
  return out;
}

}  // namespace t3d
