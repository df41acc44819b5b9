#include "tools/model_card.hpp"

#include <filesystem>

#include "config/config_load.hpp"
#include "core/error.hpp"
#include "io/log_tail.hpp"
#include "run/data_identity.hpp"
#include "run/setup.hpp"
#include "run/tokenizer_check.hpp"
#include "t3d_version.hpp"
#include "tensor3d/frozen.hpp"

namespace t3d {
namespace {

/// DIR of DIR/ckpt/step-00000100.
std::string run_folder(const CheckpointInfo& checkpoint) {
  std::filesystem::path step(checkpoint.path);
  if (!step.has_filename()) step = step.parent_path();  // "step-00000010/"
  return step.parent_path().parent_path().string();
}

void add_losses(const CheckpointInfo& checkpoint, std::string& text) {
  constexpr index_t kLook = 1000;
  std::optional<double> loss, valid, whole;
  try {
    for (const LoggedStep& step : last_steps(run_folder(checkpoint), kLook)) {
      if (step.step > checkpoint.state.step) continue;
      if (step.loss) loss = step.loss;
      if (step.valid_loss) valid = step.valid_loss;
      if (step.valid_loss_whole) whole = step.valid_loss_whole;
    }
  } catch (const Error&) {  // a log that cannot be read says nothing
  }
  if (loss) text += fmt::format("- training loss of the last logged step: {:.4f}\n", *loss);
  if (whole)
    text += fmt::format("- last validation loss, of the whole set: {:.4f}\n", *whole);
  else if (valid)
    text += fmt::format("- last validation loss, of the set's first batches: {:.4f}\n", *valid);
}

}  // namespace

std::string model_card(const CheckpointInfo& checkpoint, const ModelConfig& model) {
  std::string text = fmt::format(
      "# {}\n\nWritten by transformer3d {} ({}).\n\n- parameters: {}\n- steps: {}\n",
      checkpoint.state.run_id, kVersion, kGit, parameter_counts(model).all, checkpoint.state.step);
  const auto& texts = checkpoint.state.texts;
  if (const auto from = texts.find(kWeightsOnlyText); from != texts.end())
    text += fmt::format("- imported from: {}\n", from->second);
  if (const auto samples = texts.find("samples"); samples != texts.end())
    text +=
        fmt::format("- sequences trained on: {} of {} tokens\n", samples->second, model.context);
  if (const auto data = texts.find(kDataText); data != texts.end())
    text += fmt::format("- data: {}\n", data_hash(data->second));
  if (const auto tokenizer = texts.find(kTokenizerText); tokenizer != texts.end())
    text += fmt::format("- tokenizer: {}\n", tokenizer->second);
  if (const auto digest = texts.find("digest"); digest != texts.end())
    text += fmt::format("- digest of the checkpoint: {}\n", digest->second);
  add_losses(checkpoint, text);
  return text + "\n## Input\n\n```toml\n" + input_of(checkpoint) + "```\n";
}

}  // namespace t3d
