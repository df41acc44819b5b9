#include "io/checkpoint/manifest.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "io/crc32c.hpp"

namespace t3d {
namespace {

using Json = nlohmann::json;
constexpr const char* kFormat = "transformer3d checkpoint";
constexpr int kVersion = 1;

Json to_json(const ManifestFile& file) {
  return {{"name", file.name},
          {"bytes", file.bytes},
          {"crc32c", file.crc},
          {"crc_table", {file.table_offset, file.table_count, file.table_crc}}};
}

ManifestFile file_from(const Json& json) {
  const Json& table = json.at("crc_table");
  return {json.at("name"), json.at("bytes"), json.at("crc32c"),
          table.at(0),     table.at(1),      table.at(2)};
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
  tensor.vector = shape.size() == 1;
  tensor.rows = tensor.vector ? 1 : shape.at(0).get<index_t>();
  tensor.cols = shape.at(tensor.vector ? 0 : 1);
  for (const Json& row : json.at("boxes")) {
    const auto n = row.get<std::vector<index_t>>();
    if (n.size() != 7) throw_error(ExitCode::io, "a box has {} numbers", n.size());
    tensor.pieces.push_back({{n[1], n[2], n[3], n[4]}, n[0], n[5], n[6]});
  }
  return tensor;
}

/// Everything but the last line.
std::string body_of(const Manifest& manifest) {
  const CheckpointState& state = manifest.state;
  std::string text = fmt::format(
      "{{\n\"format\": \"{}\",\n\"version\": {},\n\"step\": {},\n\"run_id\": {},\n\"texts\": {},\n",
      kFormat, kVersion, state.step, Json(state.run_id).dump(), Json(state.texts).dump());
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
  manifest.state.step = json.at("step");
  manifest.state.run_id = json.at("run_id");
  manifest.state.texts = json.at("texts").get<std::map<std::string, std::string>>();
  for (const Json& file : json.at("files")) manifest.files.push_back(file_from(file));
  for (const auto& [name, tensor] : json.at("tensors").items())
    manifest.tensors[name] = tensor_from(tensor);
  return manifest;
}

/// Offsets are used without further looks: whatever passes here is inside its file.
void check_places(const Manifest& manifest) {
  for (const auto& [name, tensor] : manifest.tensors) {
    for (const ManifestPiece& piece : tensor.pieces) {
      const bool known = piece.file >= 0 && piece.file < std::ssize(manifest.files);
      if (!known) throw_error(ExitCode::io, "{} lies in file number {}", name, piece.file);
      const ManifestFile& file = manifest.files[static_cast<std::size_t>(piece.file)];
      const index_t bytes = piece.box.count() * size_of(tensor.dtype);
      const bool inside = piece.offset >= 0 && piece.offset + bytes <= file.bytes &&
                          piece.first_crc >= 0 &&
                          piece.first_crc + crc_blocks(bytes) <= file.table_count;
      if (!inside) throw_error(ExitCode::io, "a box of {} lies outside {}", name, file.name);
    }
  }
}

}  // namespace

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
