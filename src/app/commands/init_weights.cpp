#include "app/commands/init_weights.hpp"

#include <filesystem>
#include <set>
#include <string_view>

#include "app/config/model_text.hpp"
#include "core/error.hpp"
#include "io/checkpoint/checkpoint_glance.hpp"
#include "io/checkpoint/checkpoint_state.hpp"
#include "io/posix_file.hpp"
#include "tensor3d/whole_tensors.hpp"

namespace t3d {
namespace {

constexpr std::string_view kHf = "hf:";

std::string checkpoint_of(const std::string& path) {
  if (!path_exists(path)) throw_error(ExitCode::no_input, "there is no {}", path);
  if (path_exists(path + "/MANIFEST.json")) return path;
  if (path_exists(path + "/config.json"))
    throw_error(ExitCode::no_input,
                "{} is no checkpoint; a folder of Hugging Face's is written \"hf:{}\"", path, path);
  for (const std::string& dir : {path + "/ckpt", path})
    if (const auto newest = newest_published(dir)) return newest->path;
  throw_error(ExitCode::no_input, "there is no checkpoint in {}", path);
}

}  // namespace

InitSource find_init_source(const std::string& from) {
  if (from.starts_with(kHf)) return {true, from.substr(kHf.size())};
  return {false, checkpoint_of(from)};
}

ModelConfig model_of(const InitSource& source) {
  ModelConfig model;
  if (source.hf) {
    model = read_hf_model(source.path);
  } else {
    const CheckpointState state = read_checkpoint_state(source.path);
    const auto input = state.texts.find("input");
    if (input == state.texts.end()) throw_error(ExitCode::io, "{} holds no input", source.path);
    model = parse_model_text(input->second, source.path + " (input)");
    model.dropout = 0;  // of that run
  }
  if (model.max_context < model.context) model.max_context = model.context;
  if (model.position == Position::rope && model.context > kLongContext) model.context = 0;
  return model;
}

TokenizerClaim tokenizer_of(const InitSource& source) {
  if (!source.hf)
    return tokenizer_of(CheckpointInfo{source.path, read_checkpoint_state(source.path)});
  try {
    return {tokenizer_hash(*load_tokenizer(source.path)), source.path};
  } catch (const Error&) {  // a model without a tokenizer is a model
    return {0, source.path};
  }
}

WeightNeeds needs_of(const ModelConfig& model, bool grow_vocabulary) {
  return {model, whole_tensors(model), grow_vocabulary};
}

std::unique_ptr<WeightSource> open_weights(const InitSource& source, const WeightNeeds& needs) {
  return source.hf ? open_hf_weights(source.path, needs)
                   : open_checkpoint_weights(source.path, needs);
}

void fill_weights(const InitSource& source, const WeightNeeds& needs,
                  std::vector<TensorPart>& parts) {
  const std::unique_ptr<WeightSource> weights = open_weights(source, needs);
  std::set<std::string> names;
  for (const WholeTensor& tensor : needs.tensors) names.insert(tensor.name);
  for (const TensorPart& part : parts) {
    if (!names.contains(part.name)) continue;
    for (const auto& [box, offset] : part.boxes)
      weights->read(part.name, box, part.dtype,
                    static_cast<std::byte*>(part.data) + offset * size_of(part.dtype), box.cols);
  }
}

}  // namespace t3d
