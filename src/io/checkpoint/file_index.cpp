#include "io/checkpoint/file_index.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/error.hpp"
#include "io/checkpoint/manifest_text.hpp"
#include "io/crc32c.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

using Json = nlohmann::json;
constexpr const char* kFormat = "transformer3d checkpoint index";
constexpr std::string_view kOpens = "\"tensors\": {", kCloses = "}";  // lines around the tensors

/// Without the library's values: a box takes ten times its text there.
std::string line_of(const std::string& name, const std::vector<ManifestPiece>& pieces) {
  std::string line = Json(name).dump() + ": [";
  const char* separator = "";
  for (const ManifestPiece& piece : pieces) {
    const Box& box = piece.box;
    line += fmt::format("{}[{},{},{},{},{},{}]", separator, box.row0, box.col0, box.rows, box.cols,
                        piece.offset, piece.first_crc);
    separator = ",";
  }
  return line + "]";
}

std::vector<ManifestPiece> pieces_from(const Json& boxes) {
  std::vector<ManifestPiece> pieces;
  pieces.reserve(boxes.size());
  for (const Json& row : boxes) {
    if (row.size() != 6) throw_error(ExitCode::io, "a box has {} numbers", row.size());
    std::array<index_t, 6> n{};
    for (std::size_t at = 0; at < n.size(); ++at) n[at] = whole_number(row.at(at));
    pieces.push_back({{n[0], n[1], n[2], n[3]}, n[4], n[5]});
  }
  return pieces;
}

/// What the manifest says of one tensor in this file.
const FileRange* range_in(const Manifest& manifest, const ManifestTensor& tensor, index_t file) {
  const Cut& cut = manifest.cut_of(tensor);
  const auto found =
      std::lower_bound(cut.begin(), cut.end(), file,
                       [](const FileRange& range, index_t number) { return range.file < number; });
  return found != cut.end() && found->file == file ? &*found : nullptr;
}

class IndexReader {
 public:
  IndexReader(const Manifest& manifest, index_t file, const TensorNames& names)
      : manifest_(manifest),
        number_(file),
        file_(manifest.files[static_cast<std::size_t>(file)]),
        names_(names) {}

  FileIndex read(std::string_view body) {
    for_lines(body, [&](std::string_view line) { take(line); });
    for (const auto& [name, tensor] : manifest_.tensors)
      if (wanted(name) && range_in(manifest_, tensor, number_) != nullptr && !index_.contains(name))
        throw_error(ExitCode::io, "{} is not in it", name);
    return std::move(index_);
  }

  /// Of the tensors, each without its comma.
  template <class Take>
  void for_lines(std::string_view body, const Take& use) const {
    check_head(next(body));
    if (next(body) != kOpens) throw_error(ExitCode::io, "a line is not in order");
    for (std::string_view line = next(body); line != kCloses; line = next(body)) use(line);
    if (!body.empty()) throw_error(ExitCode::io, "a line is not in order");
  }

  static std::string name_in(std::string_view line) {
    const std::size_t end = line.find("\": [");
    if (end == std::string_view::npos) throw_error(ExitCode::io, "a line is not in order");
    return Json::parse(line.substr(0, end + 1));
  }

  void take(std::string_view line) {
    const std::string name = name_in(line);
    if (!wanted(name)) return;  // its boxes need not become numbers
    const auto found = manifest_.tensors.find(name);
    const FileRange* range =
        found == manifest_.tensors.end() ? nullptr : range_in(manifest_, found->second, number_);
    if (range == nullptr) throw_error(ExitCode::io, "the manifest has no {} there", name);
    auto pieces = pieces_from(Json::parse(line.substr(line.find("\": [") + 3)));
    if (std::ssize(pieces) != range->boxes)
      throw_error(ExitCode::io, "{} has {} boxes instead of {}", name, pieces.size(), range->boxes);
    for (const ManifestPiece& piece : pieces)
      check_place(name, size_of(found->second.dtype), range->bounds, piece, file_);
    if (!index_.try_emplace(name, std::move(pieces)).second)
      throw_error(ExitCode::io, "{} is there twice", name);
  }

  FileIndex result() { return std::move(index_); }

 private:
  [[nodiscard]] bool wanted(const std::string& name) const {
    return names_.empty() || names_.contains(name);
  }

  /// The next line without its comma.
  static std::string_view next(std::string_view& body) {
    const std::size_t end = body.find('\n');
    if (end == std::string_view::npos) throw_error(ExitCode::io, "it ends too early");
    const bool comma = end > 0 && body[end - 1] == ',';
    const std::string_view line = body.substr(0, end - (comma ? 1 : 0));
    body.remove_prefix(end + 1);
    return line;
  }

  void check_head(std::string_view line) const {
    const Json head = Json::parse(std::string(line) + "}");
    if (head.at("format") != kFormat || head.at("version") != 1)
      throw_error(ExitCode::io, "unknown format or version");
    if (head.at("file") != file_.name)
      throw_error(ExitCode::io, "it is of {}", head.at("file").dump());
  }

  const Manifest& manifest_;
  index_t number_;
  const ManifestFile& file_;
  const TensorNames& names_;
  FileIndex index_;
};

}  // namespace

std::string index_name_of(const std::string& node_file) {
  const std::size_t number = node_file.find('-'), end = node_file.rfind('.');
  return "index" + node_file.substr(number, end - number) + ".json";
}

FileRange range_of(index_t file, const std::vector<ManifestPiece>& pieces) {
  const Box& first = pieces.front().box;
  index_t row0 = first.row0, col0 = first.col0, row1 = first.row1(), col1 = first.col1();
  for (const ManifestPiece& piece : pieces) {
    row0 = std::min(row0, piece.box.row0);
    col0 = std::min(col0, piece.box.col0);
    row1 = std::max(row1, piece.box.row1());
    col1 = std::max(col1, piece.box.col1());
  }
  return {file, {row0, col0, row1 - row0, col1 - col0}, std::ssize(pieces)};
}

std::string format_index(const std::string& node_file, const FileIndex& index, index_t most_bytes) {
  std::string body = fmt::format(
      "{{\"format\": \"{}\", \"version\": 1, \"file\": {}, \"box\": \"row, column, rows, columns, "
      "byte offset, first block CRC\",\n{}",
      kFormat, Json(node_file).dump(), kOpens);
  const char* separator = "\n";
  for (const auto& [name, pieces] : index) {
    if (pieces.empty()) continue;
    body += separator + line_of(name, pieces);
    separator = ",\n";
  }
  body += fmt::format("\n{},\n", kCloses);
  return sealed(std::move(body), index_name_of(node_file), most_bytes);
}

namespace {

/// The text of an index, as the manifest means it; without its last line it is a part of `text`.
std::string_view read_checked(const std::string& folder, const ManifestFile& entry,
                              std::string& text) {
  const FileReader reader(folder + "/" + entry.index);
  const std::string& path = reader.path();
  if (reader.size() != entry.index_bytes)
    throw_error(ExitCode::io, "{} has {} bytes instead of {}", path, reader.size(),
                entry.index_bytes);
  text = read_text(reader);
  if (crc32c(text) != entry.index_crc)
    throw_error(ExitCode::io, "{} is damaged (not the one that the manifest means)", path);
  return sealed_body(text, path);
}

template <class Work>
auto named(const std::string& path, const Work& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    throw_error(ExitCode::io, "{} cannot be used: {}", path, error.what());
  }
}

}  // namespace

FileIndex read_index(const std::string& folder, const Manifest& manifest, index_t file,
                     const TensorNames& names) {
  if (!manifest.indexes.empty()) return manifest.indexes[static_cast<std::size_t>(file)];
  const ManifestFile& entry = manifest.files[static_cast<std::size_t>(file)];
  std::string text;
  const std::string_view body = read_checked(folder, entry, text);
  return named(folder + "/" + entry.index,
               [&] { return IndexReader(manifest, file, names).read(body); });
}

IndexLines::IndexLines(const std::string& folder, const Manifest& manifest, index_t file)
    : manifest_(manifest),
      file_(file),
      path_(folder + "/" + manifest.files[static_cast<std::size_t>(file)].index) {
  std::string text;
  const std::string_view body =
      read_checked(folder, manifest.files[static_cast<std::size_t>(file)], text);
  named(path_, [&] {
    IndexReader(manifest, file, {}).for_lines(body, [&](std::string_view line) {
      const index_t begin = line.data() - text.data();
      lines_.push_back({IndexReader::name_in(line), begin, begin + std::ssize(line)});
    });
  });
}

FileIndex IndexLines::read(const TensorNames& names) const {
  const FileReader reader(path_);
  return named(path_, [&] {
    IndexReader index(manifest_, file_, names);
    std::string text;
    for (const Line& line : lines_) {
      if (!names.contains(line.name)) continue;
      text.resize(static_cast<std::size_t>(line.end - line.begin));
      reader.read_at(line.begin, text.data(), std::ssize(text));
      index.take(text);
    }
    return index.result();
  });
}

}  // namespace t3d
