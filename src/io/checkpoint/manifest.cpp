#include "io/checkpoint/manifest.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/error.hpp"
#include "io/checkpoint/manifest_text.hpp"
#include "io/crc32c.hpp"

namespace t3d {
namespace {

using Json = nlohmann::json;
constexpr const char* kFormat = "transformer3d checkpoint";
constexpr int kVersion = 2;
constexpr index_t kMostSteps = index_t{1}
                               << 48;  // times anything that is counted per step: no overflow
constexpr index_t kMostLineages = index_t{1} << 31;

Json to_json(const ManifestFile& file) {
  Json json{{"name", file.name},
            {"bytes", file.bytes},
            {"crc32c", file.crc},
            {"crc_table", {file.table_offset, file.table_count, file.table_crc}}};
  if (!file.index.empty())
    json["index"] = {{"name", file.index}, {"bytes", file.index_bytes}, {"crc32c", file.index_crc}};
  return json;
}

ManifestFile file_from(const Json& json) {
  const Json& table = json.at("crc_table");
  return {plain_file_name(json.at("name")),
          whole_number(json.at("bytes")),
          whole_number(json.at("crc32c"), -1, kMostCrc),
          whole_number(table.at(0)),
          whole_number(table.at(1)),
          static_cast<std::uint32_t>(whole_number(table.at(2), 0, kMostCrc)),
          {},
          0,
          0};
}

Json to_json(const ManifestTensor& tensor) {
  Json shape = tensor.vector ? Json::array({tensor.cols}) : Json::array({tensor.rows, tensor.cols});
  return {{"dtype", std::string(name_of(tensor.dtype))}, {"shape", shape}, {"cut", tensor.cut}};
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
  tensor.rows = tensor.vector ? 1 : whole_number(shape.at(0));
  tensor.cols = whole_number(shape.at(tensor.vector ? 0 : 1));
  index_t elements = 0;
  if (__builtin_mul_overflow(tensor.rows, tensor.cols, &elements))
    throw_error(ExitCode::io, "{} x {} elements cannot be counted", tensor.rows, tensor.cols);
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
  lineage.number = whole_number(found->at("number"), 0, kMostLineages);
  const Json& parent = found->at("parent");
  if (parent.is_null()) return lineage;
  lineage.parent = parent.at("checkpoint");
  lineage.parent_run = parent.at("run_id");
  lineage.parent_step = whole_number(parent.at("step"));
  lineage.parent_lineage = whole_number(parent.at("lineage"), -1, kMostLineages);
  return lineage;
}

Json to_json(const Cut& cut) {
  Json json = Json::array();
  for (const auto& [file, box, boxes] : cut)
    json.push_back({file, box.row0, box.col0, box.rows, box.cols, boxes});
  return json;
}

Cut cut_from(const Json& json, const std::vector<ManifestFile>& files) {
  Cut cut;
  for (const Json& row : json) {
    if (row.size() != 6) throw_error(ExitCode::io, "a range has {} numbers", row.size());
    const FileRange range{
        whole_number(row.at(0), cut.empty() ? 0 : cut.back().file + 1, std::ssize(files) - 1),
        {whole_number(row.at(1)), whole_number(row.at(2)), whole_number(row.at(3), 1),
         whole_number(row.at(4), 1)},
        whole_number(row.at(5), 1)};
    if (files[static_cast<std::size_t>(range.file)].index.empty())
      throw_error(ExitCode::io, "file number {} has no index", range.file);
    cut.push_back(range);
  }
  return cut;
}

/// A cut's ranges lie in every tensor that is cut so, and reach its last row and column: a tensor
/// that is larger than what is stored of it has holes.
void check_cut(const std::string& name, const ManifestTensor& tensor, const Cut& cut) {
  index_t rows = 0, cols = 0;
  for (const FileRange& range : cut) {
    const Box& box = range.bounds;
    const bool inside = box.rows <= tensor.rows && box.row0 <= tensor.rows - box.rows &&
                        box.cols <= tensor.cols && box.col0 <= tensor.cols - box.cols;
    if (!inside) throw_error(ExitCode::io, "a range of {} lies outside it", name);
    rows = std::max(rows, box.row1());
    cols = std::max(cols, box.col1());
  }
  if (tensor.rows * tensor.cols > 0 && (rows < tensor.rows || cols < tensor.cols))
    throw_error(ExitCode::io, "no file holds the end of {}", name);
}

std::string body_of(const Manifest& manifest) {
  const CheckpointState& state = manifest.state;
  std::string text = fmt::format(
      "{{\n\"format\": \"{}\",\n\"version\": {},\n\"step\": {},\n\"run_id\": {},\n\"lineage\": "
      "{},\n\"texts\": {},\n",
      kFormat, kVersion, state.step, Json(state.run_id).dump(), to_json(state.lineage).dump(),
      Json(state.texts).dump());
  text += "\"range\": \"file, row, column, rows, columns, boxes\",\n\"files\": [";
  const char* separator = "\n";
  for (const ManifestFile& file : manifest.files) {
    text += separator + to_json(file).dump();
    separator = ",\n";
  }
  text += "],\n\"cuts\": [";
  separator = "\n";
  for (const Cut& cut : manifest.cuts) {
    text += separator + to_json(cut).dump();
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

void check_file(const ManifestFile& file) {
  index_t table_bytes = 0;
  const bool inside =
      !__builtin_mul_overflow(file.table_count, index_t{sizeof(std::uint32_t)}, &table_bytes) &&
      table_bytes <= file.bytes && file.table_offset <= file.bytes - table_bytes;
  if (!inside) throw_error(ExitCode::io, "the CRCs of {} lie outside it", file.name);
}

/// The files are beside the manifest and all different.
void check_names(const Manifest& manifest) {
  std::set<std::string> names;
  for (const ManifestFile& file : manifest.files) {
    check_file(file);
    for (const std::string& name : {file.name, file.index})
      if (!name.empty() && !names.insert(name).second)
        throw_error(ExitCode::io, "{} is named twice", name);
  }
}

Manifest manifest_of_version_2(const Json& json) {
  Manifest manifest = manifest_head(json);
  for (std::size_t n = 0; n < manifest.files.size(); ++n) {
    const auto index = json.at("files").at(n).find("index");
    if (index == json.at("files").at(n).end()) continue;
    ManifestFile& file = manifest.files[n];
    file.index = plain_file_name(index->at("name"));
    file.index_bytes = whole_number(index->at("bytes"), 0, kManifestMostBytes);
    file.index_crc = static_cast<std::uint32_t>(whole_number(index->at("crc32c"), 0, kMostCrc));
  }
  for (const Json& cut : json.at("cuts")) manifest.cuts.push_back(cut_from(cut, manifest.files));
  for (const auto& [name, entry] : json.at("tensors").items()) {
    ManifestTensor& tensor = manifest.tensors.at(name);
    tensor.cut =
        static_cast<std::size_t>(whole_number(entry.at("cut"), 0, std::ssize(manifest.cuts) - 1));
    check_cut(name, tensor, manifest.cut_of(tensor));
  }
  return manifest;
}

}  // namespace

Manifest manifest_head(const Json& json) {
  Manifest manifest;
  manifest.state.step = whole_number(json.at("step"), 0, kMostSteps);
  manifest.state.lineage = lineage_from(json);
  manifest.state.run_id = json.at("run_id");
  manifest.state.texts = json.at("texts").get<std::map<std::string, std::string>>();
  for (const Json& file : json.at("files")) manifest.files.push_back(file_from(file));
  for (const auto& [name, tensor] : json.at("tensors").items())
    manifest.tensors[name] = tensor_from(tensor);
  return manifest;
}

std::string format_manifest(const Manifest& manifest) {
  return sealed(body_of(manifest), kManifestName);
}

Manifest parse_manifest(const std::string& text, const std::string& path) {
  static_cast<void>(sealed_body(text, path));
  try {
    const Json json = Json::parse(text);
    const Json& version = json.at("version");
    if (json.at("format") != kFormat || (version != 1 && version != kVersion))
      throw_error(ExitCode::io, "unknown format or version");
    Manifest manifest = version == 1 ? manifest_of_version_1(json) : manifest_of_version_2(json);
    check_names(manifest);
    return manifest;
  } catch (const std::exception& error) {
    throw_error(ExitCode::io, "{} cannot be used: {}", path, error.what());
  }
}

index_t boxes_of(const Manifest& manifest, const ManifestTensor& tensor) {
  index_t boxes = 0;
  for (const FileRange& range : manifest.cut_of(tensor)) boxes += range.boxes;
  return boxes;
}

std::string dataset_name(const std::string& tensor, const Box& box) {
  return tensor + "/" + describe(box);
}

std::uint32_t dataset_seed(const CheckpointState& state, const std::string& dataset) {
  return crc32c(fmt::format("{}\n{}\n{}", state.run_id, state.step, dataset));
}

}  // namespace t3d
