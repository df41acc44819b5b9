#include "io/checkpoint/manifest.hpp"

#include <fmt/core.h>

#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "core/error.hpp"
#include "io/crc32c.hpp"

namespace t3d {
namespace {

using Json = nlohmann::json;
constexpr const char* kFormat = "transformer3d checkpoint";
constexpr int kVersion = 1;
constexpr index_t kMostSteps = index_t{1}
                               << 48;  // times anything that is counted per step: no overflow
constexpr index_t kMostLineages = index_t{1} << 31;

Json to_json(const ManifestFile& file) {
  return {{"name", file.name},
          {"bytes", file.bytes},
          {"crc32c", file.crc},
          {"crc_table", {file.table_offset, file.table_count, file.table_crc}}};
}

/// A whole number from `least` to `most`; the library itself would cut off or round.
index_t integer(const Json& json, index_t least = 0,
                index_t most = std::numeric_limits<index_t>::max()) {
  if (!json.is_number_integer())
    throw_error(ExitCode::io, "a {} stands where a whole number is expected", json.type_name());
  const bool large =
      json.is_number_unsigned() &&
      json.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<index_t>::max());
  if (large || json.get<index_t>() < least || json.get<index_t>() > most)
    throw_error(ExitCode::io, "{} is not from {} to {}", json.dump(), least, most);
  return json.get<index_t>();
}

constexpr index_t kMostCrc = std::numeric_limits<std::uint32_t>::max();

/// A file beside the manifest: never one somewhere else.
std::string plain_name(const Json& json) {
  auto name = json.get<std::string>();
  const bool plain = !name.empty() && name != "." && name != ".." &&
                     name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
  if (!plain) throw_error(ExitCode::io, "\"{}\" is no name of a file", name);
  return name;
}

ManifestFile file_from(const Json& json) {
  const Json& table = json.at("crc_table");
  return {plain_name(json.at("name")),
          integer(json.at("bytes")),
          integer(json.at("crc32c"), -1, kMostCrc),
          integer(table.at(0)),
          integer(table.at(1)),
          static_cast<std::uint32_t>(integer(table.at(2), 0, kMostCrc))};
}

Json to_json(const ManifestTensor& tensor) {
  Json pieces = Json::array();
  for (const ManifestPiece& piece : tensor.pieces) {
    const Box& box = piece.box;
    pieces.push_back(
        {piece.file, box.row0, box.col0, box.rows, box.cols, piece.offset, piece.first_crc});
  }
  Json shape = tensor.vector ? Json::array({tensor.cols}) : Json::array({tensor.rows, tensor.cols});
  return {{"dtype", std::string(name_of(tensor.dtype))}, {"shape", shape}, {"boxes", pieces}};
}

DType dtype_from(const std::string& name) {
  for (const DType type : {DType::f64, DType::f32, DType::i32})
    if (name == name_of(type)) return type;
  throw_error(ExitCode::io, "unknown number format {}", name);
}

ManifestTensor tensor_from(const Json& json) {
  ManifestTensor tensor;
  tensor.dtype = dtype_from(json.at("dtype"));
  const Json& shape = json.at("shape");
  if (shape.size() != 1 && shape.size() != 2)
    throw_error(ExitCode::io, "a shape has {} numbers", shape.size());
  tensor.vector = shape.size() == 1;
  tensor.rows = tensor.vector ? 1 : integer(shape.at(0));
  tensor.cols = integer(shape.at(tensor.vector ? 0 : 1));
  for (const Json& row : json.at("boxes")) {
    if (row.size() != 7) throw_error(ExitCode::io, "a box has {} numbers", row.size());
    std::array<index_t, 7> n{};
    for (std::size_t at = 0; at < n.size(); ++at) n[at] = integer(row.at(at));
    tensor.pieces.push_back({{n[1], n[2], n[3], n[4]}, n[0], n[5], n[6]});
  }
  return tensor;
}

Json to_json(const Lineage& lineage) {
  Json parent;  // null
  if (!lineage.parent.empty())
    parent = {{"checkpoint", lineage.parent},
              {"run_id", lineage.parent_run},
              {"step", lineage.parent_step},
              {"lineage", lineage.parent_lineage}};
  return {{"number", lineage.number}, {"parent", parent}};
}

/// Checkpoints written before there were lineages say nothing of them.
Lineage lineage_from(const Json& manifest) {
  Lineage lineage;
  const auto found = manifest.find("lineage");
  if (found == manifest.end()) return lineage;
  lineage.number = integer(found->at("number"), 0, kMostLineages);
  const Json& parent = found->at("parent");
  if (parent.is_null()) return lineage;
  lineage.parent = parent.at("checkpoint");
  lineage.parent_run = parent.at("run_id");
  lineage.parent_step = integer(parent.at("step"));
  lineage.parent_lineage = integer(parent.at("lineage"), -1, kMostLineages);
  return lineage;
}

/// Everything but the last line.
std::string body_of(const Manifest& manifest) {
  const CheckpointState& state = manifest.state;
  std::string text = fmt::format(
      "{{\n\"format\": \"{}\",\n\"version\": {},\n\"step\": {},\n\"run_id\": {},\n\"lineage\": "
      "{},\n\"texts\": {},\n",
      kFormat, kVersion, state.step, Json(state.run_id).dump(), to_json(state.lineage).dump(),
      Json(state.texts).dump());
  text += "\"box\": \"file, row, column, rows, columns, byte offset, first block CRC\",\n";
  text += "\"files\": [";
  const char* separator = "\n";
  for (const ManifestFile& file : manifest.files) {
    text += separator + to_json(file).dump();
    separator = ",\n";
  }
  text += "],\n\"tensors\": {";
  separator = "\n";
  for (const auto& [name, tensor] : manifest.tensors) {
    text += separator + Json(name).dump() + ": " + to_json(tensor).dump();
    separator = ",\n";
  }
  return text + "},\n";
}

std::string last_line(const std::string& body) {
  return fmt::format("\"crc32c\": \"{:08x}\"}}\n", crc32c(body));
}

Manifest from_json(const Json& json) {
  Manifest manifest;
  manifest.state.step = integer(json.at("step"), 0, kMostSteps);
  manifest.state.lineage = lineage_from(json);
  manifest.state.run_id = json.at("run_id");
  manifest.state.texts = json.at("texts").get<std::map<std::string, std::string>>();
  for (const Json& file : json.at("files")) manifest.files.push_back(file_from(file));
  for (const auto& [name, tensor] : json.at("tensors").items())
    manifest.tensors[name] = tensor_from(tensor);
  return manifest;
}

void check_file(const ManifestFile& file) {
  index_t table_bytes = 0;
  const bool inside =
      !__builtin_mul_overflow(file.table_count, index_t{sizeof(std::uint32_t)}, &table_bytes) &&
      table_bytes <= file.bytes && file.table_offset <= file.bytes - table_bytes;
  if (!inside) throw_error(ExitCode::io, "the CRCs of {} lie outside it", file.name);
}

/// A box of a tensor that cover_fault finds in order: its count does not overflow, its bytes may.
void check_place(const std::string& name, const ManifestTensor& tensor, const ManifestPiece& piece,
                 const std::vector<ManifestFile>& files) {
  if (piece.file < 0 || piece.file >= std::ssize(files))
    throw_error(ExitCode::io, "{} lies in file number {}", name, piece.file);
  const ManifestFile& file = files[static_cast<std::size_t>(piece.file)];
  index_t bytes = 0;
  const bool inside = !piece.box.empty() &&
                      !__builtin_mul_overflow(piece.box.count(), size_of(tensor.dtype), &bytes) &&
                      bytes <= file.bytes && piece.offset <= file.bytes - bytes &&
                      piece.first_crc <= file.table_count &&
                      crc_blocks(bytes) <= file.table_count - piece.first_crc;
  if (!inside) throw_error(ExitCode::io, "a box of {} lies outside {}", name, file.name);
}

/// Numbers are used without further looks: whatever passes here is inside its file, the files are
/// beside the manifest and all different, and every element of a tensor is there once.
void check_places(const Manifest& manifest) {
  std::set<std::string> names;
  for (const ManifestFile& file : manifest.files) {
    check_file(file);
    if (!names.insert(file.name).second) throw_error(ExitCode::io, "{} is named twice", file.name);
  }
  for (const auto& [name, tensor] : manifest.tensors) {
    const std::string fault = cover_fault(boxes_of(tensor), tensor.rows, tensor.cols);
    if (!fault.empty()) throw_error(ExitCode::io, "{}: {}", name, fault);
    for (const ManifestPiece& piece : tensor.pieces)
      check_place(name, tensor, piece, manifest.files);
  }
}

}  // namespace

std::vector<Box> boxes_of(const ManifestTensor& tensor) {
  std::vector<Box> boxes;
  for (const ManifestPiece& piece : tensor.pieces) boxes.push_back(piece.box);
  return boxes;
}

std::string format_manifest(const Manifest& manifest) {
  const std::string body = body_of(manifest);
  return body + last_line(body);
}

Manifest parse_manifest(const std::string& text, const std::string& path) {
  const auto end = text.size() < 2 ? std::string::npos : text.rfind('\n', text.size() - 2);
  if (end == std::string::npos) throw_error(ExitCode::io, "{} is damaged (cut short)", path);
  const std::string body = text.substr(0, end + 1);
  if (text.substr(end + 1) != last_line(body))
    throw_error(ExitCode::io, "{} is damaged (its CRC does not match)", path);
  try {
    const Json json = Json::parse(text);
    if (json.at("format") != kFormat || json.at("version") != kVersion)
      throw_error(ExitCode::io, "unknown format or version");
    Manifest manifest = from_json(json);
    check_places(manifest);
    return manifest;
  } catch (const std::exception& error) {
    throw_error(ExitCode::io, "{} cannot be used: {}", path, error.what());
  }
}

std::string dataset_name(const std::string& tensor, const Box& box) {
  return tensor + "/" + describe(box);
}

std::uint32_t dataset_seed(const CheckpointState& state, const std::string& dataset) {
  return crc32c(fmt::format("{}\n{}\n{}", state.run_id, state.step, dataset));
}

std::string format_fragment(const Manifest& fragment) {
  Json tensors = Json::object();
  for (const auto& [name, tensor] : fragment.tensors) tensors[name] = to_json(tensor);
  Json files = Json::array();
  for (const ManifestFile& file : fragment.files) files.push_back(to_json(file));
  return Json{{"files", files}, {"tensors", tensors}}.dump();
}

void add_fragment(Manifest& manifest, const std::string& text) {
  const Json json = Json::parse(text);
  const index_t number = std::ssize(manifest.files);
  for (const Json& file : json.at("files")) manifest.files.push_back(file_from(file));
  for (const auto& [name, entry] : json.at("tensors").items()) {
    ManifestTensor tensor = tensor_from(entry);
    ManifestTensor& whole =
        manifest.tensors
            .try_emplace(name,
                         ManifestTensor{tensor.dtype, tensor.rows, tensor.cols, tensor.vector, {}})
            .first->second;
    if (whole.dtype != tensor.dtype || whole.rows != tensor.rows || whole.cols != tensor.cols ||
        whole.vector != tensor.vector)
      throw_error(ExitCode::io, "ranks disagree on the shape of {}", name);
    for (ManifestPiece& piece : tensor.pieces) {
      piece.file = number;
      whole.pieces.push_back(piece);
    }
  }
}

}  // namespace t3d
