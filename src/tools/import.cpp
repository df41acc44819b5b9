// import: a Hugging Face model becomes a checkpoint that has weights only.
#include <algorithm>

#include "config/model_text.hpp"
#include "io/checkpoint/checkpoint_write.hpp"
#include "io/output.hpp"
#include "io/partial_file.hpp"
#include "io/posix_file.hpp"
#include "run/init_weights.hpp"
#include "run/setup.hpp"
#include "run/tokenizer_check.hpp"
#include "sched/stop_signal.hpp"
#include "tensor3d/model_shape.hpp"
#include "tensor3d/whole_tensors.hpp"
#include "tokenizer/special_files.hpp"
#include "tools/commands.hpp"

namespace t3d {
namespace {

ModelConfig wanted_model(const ImportCommand& wish, std::vector<std::string>& notes) {
  ModelConfig model = read_hf_model(wish.folder);
  model.max_context = model.context;
  check_hf_window(wish.folder, std::max(wish.context, model.context));
  if (wish.context > model.context)
    notes.push_back(fmt::format("--context {} is longer than the {} tokens that the model allows",
                                wish.context, model.context));
  if (wish.context > 0)
    model.context = wish.context;
  else if (model.position == Position::rope)
    model.context = std::min(model.context, kLongContext);
  if (wish.vocab > 0) {
    if (wish.vocab < model.vocab)
      throw_error(ExitCode::usage, "--vocab {}: the model has {} tokens", wish.vocab, model.vocab);
    model.vocab = wish.vocab;
  }
  return parse_model_text(model_text(model), wish.folder + "/config.json");
}

std::vector<TensorPart> parts_of(const std::vector<WholeTensor>& tensors) {
  std::vector<TensorPart> parts;
  for (const WholeTensor& tensor : tensors)
    parts.push_back({tensor.name,
                     DType::f32,
                     tensor.rows,
                     tensor.cols,
                     tensor.vector,
                     nullptr,
                     {{{0, 0, tensor.rows, tensor.cols}, 0}}});
  return parts;
}

/// A table of tokens that may have more of them than the model.
bool grows(const TensorPart& tensor, const WeightNeeds& needs) {
  return needs.grow_vocabulary &&
         std::any_of(needs.tensors.begin(), needs.tensors.end(), [&](const WholeTensor& own) {
           return own.vocabulary && own.name == tensor.name;
         });
}

/// Rows of tokens that the model does not have, as a fresh model has them.
void fill_fresh(const ModelConfig& model, const TensorPart& tensor, const Box& box, float* out) {
  const RandomKey key{1, stream_of(tensor.name)};
  for (index_t at = 0; at < box.count(); ++at)
    out[at] = static_cast<float>(model.init_std * random_normal(key, box.row0 * tensor.cols + at));
}

/// The tokenizer beside the model's files; a model without one is a model.
std::unique_ptr<Tokenizer> find_tokenizer(const ImportCommand& wish, const ModelConfig& model,
                                          std::vector<std::string>& notes) {
  if (wish.no_tokenizer) return nullptr;
  std::unique_ptr<Tokenizer> tokenizer;
  try {
    tokenizer = load_tokenizer(wish.folder);
  } catch (const Error& error) {
    if (error.code() != ExitCode::no_input && holds_tokenizer(wish.folder))
      throw_error(error.code(), "{}\n--no-tokenizer leaves it out", error.what());
    notes.push_back(fmt::format("no tokenizer is taken: {}", error.what()));
    return nullptr;
  }
  if (tokenizer->vocab() > model.vocab)
    throw_error(ExitCode::config,
                "the tokenizer of {} has {} ids, the model {}; --vocab {} grows the model, "
                "--no-tokenizer leaves the tokenizer out",
                wish.folder, tokenizer->vocab(), model.vocab, tokenizer->vocab());
  return tokenizer;
}

std::string import_model(const ImportCommand& wish, std::vector<std::string>& notes) {
  const ModelConfig model = wanted_model(wish, notes);
  const WeightNeeds needs = needs_of(model, wish.vocab > 0);
  const auto source = open_hf_weights(wish.folder, needs);
  CheckpointState state;
  state.run_id = "import";
  state.texts = {{"input", "# Imported from " + wish.folder + "\n" + model_text(model)},
                 {kWeightsOnlyText, wish.folder}};
  const std::unique_ptr<Tokenizer> tokenizer = find_tokenizer(wish, model, notes);
  const std::uint64_t hash = tokenizer == nullptr ? 0 : tokenizer_hash(*tokenizer);
  if (hash != 0) state.texts[kTokenizerText] = tokenizer_text(hash);
  const SpecialIds special =
      special_ids_of_folder(wish.folder, tokenizer.get(), model.vocab, notes);
  if (special != SpecialIds()) state.texts[kSpecialText] = special_text(special);
  CheckpointOptions options;
  PartialFolder folder(wish.dir);
  options.dir = folder.name();
  const std::string path =
      write_checkpoint(options, state, parts_of(needs.tensors),
                       [&](const TensorPart& tensor, const Box& box, void* out) {
                         if (box.row1() > source->vocabulary() && grows(tensor, needs))
                           fill_fresh(model, tensor, box, static_cast<float*>(out));
                         source->read(tensor.name, box, DType::f32, out, box.cols);
                         check_finite(tensor.name, DType::f32, out, box.count());
                       });
  if (hash != 0 && !tokenizer->model().empty())
    write_text_durably(tokenizer_file(folder.name(), hash), tokenizer->model());
  folder.publish();
  std::string text =
      fmt::format("{}{}: {} parameters, context {}", folder.path(),
                  path.substr(folder.name().size()), parameter_count(model), model.context);
  if (model.max_context > model.context)
    text += fmt::format(" of {} (--context takes another)", model.max_context);
  return text + "\n";
}

}  // namespace

int run_import(Communicator& world, const CommandLine& command) {
  std::vector<std::string> notes;
  all_or_none(world, [&] {
    if (world.rank() != 0) return;
    die_of_stop_signals(remove_partial_files);
    write_output(import_model(command.imports, notes));
    flush_output();
  });
  print_notes(world, notes);
  return 0;
}

}  // namespace t3d
