#include "run/init_weights.hpp"

#include <fmt/format.h>

#include <set>
#include <string_view>

#include "comm/agree.hpp"
#include "config/config_check.hpp"
#include "config/model_text.hpp"
#include "core/error.hpp"
#include "core/finite.hpp"
#include "io/checkpoint/checkpoint_glance.hpp"
#include "io/checkpoint/checkpoint_state.hpp"
#include "io/posix_file.hpp"
#include "run/setup.hpp"
#include "tensor3d/frozen.hpp"
#include "tensor3d/whole_tensors.hpp"
#include "tokenizer/special_files.hpp"

namespace t3d {
namespace {

constexpr std::string_view kHf = "hf:";

/// And none was chosen. What cannot be looked at is told when the run looks for its checkpoint.
bool has_no_checkpoint(const CheckpointConfig& checkpoint) {
  try {
    return (checkpoint.restart == "auto" || checkpoint.restart == "never") &&
           !newest_published(checkpoint.dir);
  } catch (const Error&) {
    return false;
  }
}

// A name of Hugging Face's hub ("org/model") looks like a path.
void check_is_there(const std::string& from) {
  const std::string path = from.starts_with(kHf) ? from.substr(kHf.size()) : from;
  if (path.empty())
    throw_error(ExitCode::no_input,
                "\"hf:\" names no folder; write \"hf:DIR\", where DIR has the model's config.json");
  if (path_exists(path)) return;
  throw_error(ExitCode::no_input,
              "there is no {}; this program downloads nothing: get a model of Hugging "
              "Face's hub by \"hf download ORG/MODEL --local-dir DIR\", then write init.from = "
              "\"hf:DIR\"",
              path);
}

}  // namespace

InitSource find_init_source(Communicator& world, const std::string& from) {
  all_or_none(world, [&] {
    if (world.rank() == 0) check_is_there(from);
  });
  if (from.starts_with(kHf)) return {true, from.substr(kHf.size())};
  all_or_none(world, [&] {
    if (world.rank() == 0 && path_exists(from + "/config.json"))
      throw_error(ExitCode::no_input,
                  "{} is no checkpoint; a folder of Hugging Face's is written \"hf:{}\"", from,
                  from);
  });
  return {false, find_any_checkpoint(world, from).path};
}

void check_same_computation(const InitSource& source, const ModelConfig& model) {
  if (source.hf) check_hf_window(source.path, model.context);
  const std::vector<std::string> lines = other_computation(model_of(source), model);
  if (!lines.empty())
    throw_error(ExitCode::config,
                "[model] is not what the weights of {} were trained for\n  {}\nleave these keys "
                "out: they are taken from there",
                source.path, fmt::join(lines, "\n  "));
}

void check_first_weights(Communicator& world, const Config& config) {
  if (config.init.from.empty()) return;
  std::string begins;
  if (world.rank() == 0 && has_no_checkpoint(config.checkpoint)) begins = "yes";
  if (broadcast_text(world, begins).empty()) return;
  const InitSource source = find_init_source(world, config.init.from);
  all_or_none(world, [&] {
    if (world.rank() == 0) check_same_computation(source, config.model);
  });
}

ModelConfig model_of(const InitSource& source) {
  ModelConfig model;
  if (source.hf) {
    model = read_hf_model(source.path);
  } else {
    const CheckpointState state = read_checkpoint_state(source.path);
    model = model_of_input(input_of({source.path, state}));
    model.dropout = 0;  // of that run, like what it did not train
    model.freeze.clear();
  }
  fill_model_defaults(model);
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
    if (holds_tokenizer(source.path)) throw;
    return {0, source.path};
  }
}

SpecialIds special_ids_of(const InitSource& source, std::vector<std::string>& notes) {
  if (!source.hf) {
    const CheckpointInfo checkpoint{source.path, read_checkpoint_state(source.path)};
    return special_ids_of(checkpoint, nullptr, model_of_input(input_of(checkpoint)).vocab);
  }
  const auto tokenizer = holds_tokenizer(source.path) ? load_tokenizer(source.path) : nullptr;
  return special_ids_of_folder(source.path, tokenizer.get(), read_hf_model(source.path).vocab,
                               notes);
}

bool holds_tokenizer(const std::string& folder) {
  for (const char* name : {"tokenizer.json", "tokenizer.model", "tiktoken.model"})
    if (path_exists(folder + "/" + name)) return true;
  return false;
}

void check_finite(const std::string& tensor, DType dtype, const void* numbers, index_t count) {
  if (!all_finite(dtype, numbers, count))
    throw_error(ExitCode::config, "{} holds numbers that are not finite", tensor);
}

namespace {

LoraOptions adapters_of(const InitSource& source) {
  return source.hf ? LoraOptions() : model_of(source).lora;
}

}  // namespace

WeightNeeds needs_of(const ModelConfig& model, bool grow_vocabulary) {
  return {model, whole_tensors(model), grow_vocabulary};
}

std::string adapters_text(const InitSource& source, const ModelConfig& model) {
  const LoraOptions there = adapters_of(source);
  if (!there.on()) return {};
  return there == model.lora ? ", with its adapters" : ", its adapters added to them";
}

// A run with other adapters than the source's begins from the sum of its weights and adapters.
std::unique_ptr<WeightSource> open_weights(const InitSource& source, WeightNeeds& needs) {
  const LoraOptions there = adapters_of(source);
  if (there.on() && there == needs.model.lora) return open_checkpoint_weights(source.path, needs);
  std::erase_if(needs.tensors, [](const WholeTensor& tensor) { return is_adapter(tensor.name); });
  if (source.hf) return open_hf_weights(source.path, needs);
  if (!there.on()) return open_checkpoint_weights(source.path, needs);
  WeightNeeds with_adapters = needs;
  with_adapters.model.lora = there;
  with_adapters.tensors = whole_tensors(with_adapters.model);
  return merge_adapters(open_checkpoint_weights(source.path, with_adapters),
                        adapted_parts(with_adapters.model));
}

void fill_weights(const InitSource& source, WeightNeeds needs, std::vector<TensorPart>& parts) {
  const std::unique_ptr<WeightSource> weights = open_weights(source, needs);
  std::set<std::string> names;
  for (const WholeTensor& tensor : needs.tensors) names.insert(tensor.name);
  for (const TensorPart& part : parts) {
    if (!names.contains(part.name)) continue;
    for (const auto& [box, offset] : part.boxes) {
      std::byte* numbers = static_cast<std::byte*>(part.data) + offset * size_of(part.dtype);
      weights->read(part.name, box, part.dtype, numbers, box.cols);
      check_finite(part.name, part.dtype, numbers, box.count());
    }
  }
}

}  // namespace t3d
