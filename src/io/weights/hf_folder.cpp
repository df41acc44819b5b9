#include "io/weights/hf_folder.hpp"

#include <nlohmann/json.hpp>
#include <set>

#include "core/error.hpp"
#include "core/utf8.hpp"

namespace t3d {
namespace {

constexpr const char* kWhole = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

[[noreturn]] void no_safetensors(const std::string& folder) {
  for (const char* pickle : {"pytorch_model.bin", "pytorch_model.bin.index.json"})
    if (path_exists(folder + "/" + pickle))
      throw_error(ExitCode::no_input,
                  "{} has pickled weights, which are programs and are not read; convert them with\n"
                  "  python3 -c 'from transformers import AutoModelForCausalLM as M; "
                  "M.from_pretrained(\"{}\").save_pretrained(\"{}-safetensors\")'",
                  folder, folder, folder);
  throw_error(ExitCode::no_input, "{} has neither {} nor {}", folder, kWhole, kIndex);
}

/// A file's name alone: what leads out of the folder is refused.
void check_name(const std::string& name, const std::string& index) {
  if (name.empty() || name.front() == '.' || name.find('/') != std::string::npos ||
      name.find('\0') != std::string::npos)
    throw_error(ExitCode::io, "{}: \"{}\" is no name of a file in this folder", index,
                printable(name, 100));
}

}  // namespace

HfFolder::HfFolder(const std::string& folder) : path_(folder) {
  if (path_exists(folder + "/" + kWhole))
    open(kWhole);
  else if (path_exists(folder + "/" + kIndex))
    open_indexed(folder + "/" + kIndex);
  else
    no_safetensors(folder);
}

void HfFolder::open(const std::string& name) {
  files_.push_back(std::make_unique<SafetensorsReader>(path_ + "/" + name));
  const SafetensorsReader& file = *files_.back();
  for (const auto& [tensor, entry] : file.tensors())
    if (!tensors_.emplace(tensor, Place{&file, &entry}).second)
      throw_error(ExitCode::io, "{} is in two files, {} and {}", printable(tensor, 100),
                  tensors_.at(tensor).file->path(), file.path());
}

void HfFolder::open_indexed(const std::string& index) {
  const nlohmann::json json = nlohmann::json::parse(read_text_file(index), nullptr, false);
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (!json.is_object() || map == json.end() || !map->is_object())
    throw_error(ExitCode::io, "{} has no weight_map", index);
  std::set<std::string> names;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string()) throw_error(ExitCode::io, "{}: {} lies in no file", index, tensor);
    names.insert(file.get<std::string>());
  }
  for (const std::string& name : names) {
    check_name(name, index);
    open(name);
  }
  for (const auto& [tensor, file] : map->items())
    if (!tensors_.contains(tensor))
      throw_error(ExitCode::io, "{} says that {} has {}, which it has not", index,
                  file.get<std::string>(), printable(tensor, 100));
}

}  // namespace t3d
