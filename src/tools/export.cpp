// export: a checkpoint becomes a folder that Hugging Face's tools load.
#include "config/config_load.hpp"
#include "config/model_text.hpp"
#include "io/output.hpp"
#include "io/partial_file.hpp"
#include "io/posix_file.hpp"
#include "io/weights/hf_config.hpp"
#include "io/weights/hf_export.hpp"
#include "io/weights/hf_layout.hpp"
#include "io/weights/peft.hpp"
#include "run/init_weights.hpp"
#include "run/setup.hpp"
#include "run/tokenizer_check.hpp"
#include "sched/stop_signal.hpp"
#include "tensor3d/whole_tensors.hpp"
#include "tokenizer/special_files.hpp"
#include "tools/commands.hpp"
#include "tools/model_card.hpp"

namespace t3d {
namespace {

struct Number {
  std::string_view word, hf;
  DType dtype;
};

Number number_of(const std::string& word) {
  for (const Number& known : {Number{"fp32", "float32", DType::f32},
                              {"bf16", "bfloat16", DType::bf16},
                              {"fp16", "float16", DType::f16},
                              {"fp64", "float64", DType::f64}})
    if (known.word == word) return known;
  throw_error(ExitCode::usage, "--dtype {} is not known", word);
}

/// Null, with a note, where the checkpoint does not know it.
std::unique_ptr<Tokenizer> find_tokenizer(const CheckpointInfo& checkpoint,
                                          const ModelConfig& model, const CommandLine& command,
                                          std::vector<std::string>& notes) {
  try {
    Config config;
    config.model = model;
    const Config wished = glance_at_input("", "", command.overrides);
    const Config before = glance_at_input(input_of(checkpoint), "", {});
    config.data = before.data;
    if (!wished.data.tokenizer.empty()) config.data.tokenizer = wished.data.tokenizer;
    return load_tokenizer_of(checkpoint, config, notes);
  } catch (const Error& error) {
    notes.push_back(fmt::format("no tokenizer is exported: {}", error.what()));
    return nullptr;
  }
}

/// Those of the checkpoint, or what the user says that they are.
SpecialIds special_ids_for(const CheckpointInfo& checkpoint, const ModelConfig& model,
                           const Tokenizer* tokenizer, const std::vector<std::string>& eos) {
  SpecialIds ids = special_ids_of(checkpoint, tokenizer, model.vocab);
  if (eos.empty()) return ids;
  ids.ends.clear();
  for (const std::string& word : eos) ids.ends.push_back(named_id(word, tokenizer, model.vocab));
  ids.eos = ids.ends.front();
  ids.unnamed.eos = false;
  return ids;
}

void write_tokenizer(const Tokenizer& tokenizer, const SpecialIds& ids, const std::string& folder,
                     std::vector<std::string>& notes) {
  const std::vector<TokenizerFile> files = tokenizer.files(ids);
  for (const TokenizerFile& file : files) write_text_durably(folder + "/" + file.name, file.text);
  if (files.empty())
    notes.push_back(
        fmt::format("the tokenizer \"{}\" has no form of Hugging Face's", tokenizer.kind()));
}

std::string written(const std::string& folder, const HfFiles& files, std::string_view number) {
  return fmt::format("{}: {} of weights as {} in {} file(s)\n", folder,
                     format_bytes(static_cast<double>(files.bytes)), number, files.names.size());
}

/// The adapters alone, which belong to the model that init.from names.
std::string export_adapters(const CheckpointInfo& checkpoint, const ModelConfig& model,
                            const Number& number, const std::string& to,
                            std::vector<std::string>& notes) {
  const std::vector<HfTensor> tensors = peft_tensors(model, adapted_parts(model));
  const auto source = open_checkpoint_weights(checkpoint.path, needs_of(model, false));
  const std::string from = glance_at_input(input_of(checkpoint), "", {}).init.from;
  constexpr std::string_view kHf = "hf:";
  if (!from.starts_with(kHf))
    notes.push_back(fmt::format(
        "the adapters belong to the weights that the run began from ({}), which are no model of "
        "Hugging Face's; --format hf writes a whole one",
        from.empty() ? "fresh ones" : from));
  PartialFolder folder(to);
  const HfFiles files =
      write_hf_weights(*source, tensors, number.dtype, folder.name(), "adapter_model");
  write_text_durably(
      folder.name() + "/adapter_config.json",
      peft_config_text(model, from.starts_with(kHf) ? from.substr(kHf.size()) : std::string()));
  folder.publish();
  return written(to, files, number.hf);
}

std::string export_model(const CheckpointInfo& checkpoint, const CommandLine& command,
                         std::vector<std::string>& notes) {
  const ExportCommand& wish = command.exports;
  const Number number = number_of(wish.dtype);
  for (const std::string& word : command.overrides)
    if (!word.starts_with("data.tokenizer="))
      throw_error(ExitCode::usage, "export takes --set data.tokenizer=FILE, not {}", word);
  const ModelConfig model = model_of_input(input_of(checkpoint));
  (void)hf_family(model);  // before anything is written
  if (wish.format == "peft") return export_adapters(checkpoint, model, number, wish.folder, notes);
  const auto source = merge_adapters(
      open_checkpoint_weights(checkpoint.path, needs_of(model, false)), adapted_parts(model));
  PartialFolder folder(wish.folder);
  const auto tokenizer = find_tokenizer(checkpoint, model, command, notes);
  const SpecialIds tokens = special_ids_for(checkpoint, model, tokenizer.get(), wish.eos);
  if (tokenizer) write_tokenizer(*tokenizer, tokens, folder.name(), notes);
  const HfFiles files = write_hf_weights(*source, hf_tensors(model), number.dtype, folder.name());
  const auto write = [&](const char* name, const std::string& text) {
    write_text_durably(folder.name() + "/" + name, text);
  };
  write("generation_config.json", hf_generation_text(tokens));
  write("README.md", model_card(checkpoint, model));
  write("config.json", hf_config_text(model, number.hf, tokens));
  folder.publish();
  return written(wish.folder, files, number.hf);
}

}  // namespace

int run_export(Communicator& world, const CommandLine& command) {
  const CheckpointInfo checkpoint = find_any_checkpoint(world, command.exports.checkpoint);
  std::vector<std::string> notes;
  all_or_none(world, [&] {
    if (world.rank() != 0) return;
    die_of_stop_signals(remove_partial_files);
    write_output(export_model(checkpoint, command, notes));
    flush_output();
  });
  print_notes(world, notes);
  return 0;
}

}  // namespace t3d
