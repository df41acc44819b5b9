#include "io/checkpoint/manifest_text.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "core/error.hpp"
#include "io/crc32c.hpp"

namespace t3d {
namespace {

std::string last_line(std::string_view body) {
  return fmt::format("\"crc32c\": \"{:08x}\"}}\n", crc32c(body));
}

}  // namespace

index_t whole_number(const nlohmann::json& json, index_t least, index_t most) {
  if (!json.is_number_integer())
    throw_error(ExitCode::io, "a {} stands where a whole number is expected", json.type_name());
  const bool large =
      json.is_number_unsigned() &&
      json.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<index_t>::max());
  if (large || json.get<index_t>() < least || json.get<index_t>() > most)
    throw_error(ExitCode::io, "{} is not from {} to {}", json.dump(), least, most);
  return json.get<index_t>();
}

std::string plain_file_name(const nlohmann::json& json) {
  auto name = json.get<std::string>();
  const bool plain = !name.empty() && name != "." && name != ".." &&
                     name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
  if (!plain) throw_error(ExitCode::io, "\"{}\" is no name of a file", name);
  return name;
}

std::string sealed(std::string body, const std::string& path, index_t most_bytes) {
  const std::string line = last_line(body);
  body += line;
  if (std::ssize(body) > most_bytes)
    throw_error(ExitCode::io, "{} would have {} bytes, and no more than {} are read again", path,
                body.size(), most_bytes);
  return body;
}

std::string_view sealed_body(std::string_view text, const std::string& path) {
  const auto end = text.size() < 2 ? std::string::npos : text.rfind('\n', text.size() - 2);
  if (end == std::string::npos) throw_error(ExitCode::io, "{} is damaged (cut short)", path);
  const std::string_view body = text.substr(0, end + 1);
  if (text.substr(end + 1) != last_line(body))
    throw_error(ExitCode::io, "{} is damaged (its CRC does not match)", path);
  return body;
}

void check_place(const std::string& tensor, index_t element_bytes, const Box& bounds,
                 const ManifestPiece& piece, const ManifestFile& file) {
  const auto within = [](index_t first, index_t count, index_t from, index_t length) {
    return count > 0 && first >= from && first - from <= length && count <= length - (first - from);
  };
  const Box& box = piece.box;
  index_t elements = 0, bytes = 0;
  const bool inside = within(box.row0, box.rows, bounds.row0, bounds.rows) &&
                      within(box.col0, box.cols, bounds.col0, bounds.cols) &&
                      !__builtin_mul_overflow(box.rows, box.cols, &elements) &&
                      !__builtin_mul_overflow(elements, element_bytes, &bytes) &&
                      piece.offset >= 0 && bytes <= file.bytes &&
                      piece.offset <= file.bytes - bytes && piece.first_crc >= 0 &&
                      piece.first_crc <= file.table_count &&
                      crc_blocks(bytes) <= file.table_count - piece.first_crc;
  if (!inside) throw_error(ExitCode::io, "a box of {} lies outside {}", tensor, file.name);
}

}  // namespace t3d
