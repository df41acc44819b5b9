#include "config/foreign_names.hpp"

#include <algorithm>
#include <iterator>

namespace t3d {
namespace {

struct ForeignName {
  std::string_view theirs, ours;
};

// Of transformers, nanoGPT, Megatron-LM, llm.c and TorchTitan; with underscores.
constexpr ForeignName kNames[] = {
    {"learning_rate", "optimizer.lr"},
    {"max_lr", "optimizer.lr"},
    {"lr", "optimizer.lr"},
    {"min_learning_rate", "schedule.final_fraction"},
    {"weight_decay", "optimizer.weight_decay"},
    {"grad_clip", "optimizer.clip_norm"},
    {"max_grad_norm", "optimizer.clip_norm"},
    {"clip_grad", "optimizer.clip_norm"},
    {"warmup", "schedule.warmup_steps"},
    {"warmup_iters", "schedule.warmup_steps"},
    {"num_warmup_steps", "schedule.warmup_steps"},
    {"batch_size", "batch.sequences"},
    {"global_batch_size", "batch.sequences"},
    {"train_batch_size", "batch.sequences"},
    {"micro_batch_size", "batch.micro"},
    {"per_device_train_batch_size", "batch.micro"},
    {"epochs", "run.tokens"},
    {"num_epochs", "run.tokens"},
    {"num_train_epochs", "run.tokens"},
    {"max_steps", "run.steps"},
    {"max_iters", "run.steps"},
    {"train_iters", "run.steps"},
    {"num_steps", "run.steps"},
    {"train_steps", "run.steps"},
    {"output_dir", "run.dir"},
    {"out_dir", "run.dir"},
    {"seq_length", "model.context"},
    {"seq_len", "model.context"},
    {"sequence_length", "model.context"},
    {"block_size", "model.context"},
    {"context_length", "model.context"},
    {"n_ctx", "model.context"},
    {"n_positions", "model.context"},
    {"max_seq_len", "model.context"},
    {"max_position_embeddings", "model.context"},
    {"n_layer", "model.layers"},
    {"n_layers", "model.layers"},
    {"num_layers", "model.layers"},
    {"num_hidden_layers", "model.layers"},
    {"depth", "model.layers"},
    {"n_head", "model.heads"},
    {"n_heads", "model.heads"},
    {"num_heads", "model.heads"},
    {"num_attention_heads", "model.heads"},
    {"n_kv_heads", "model.kv_heads"},
    {"num_key_value_heads", "model.kv_heads"},
    {"n_embd", "model.hidden"},
    {"dim", "model.hidden"},
    {"d_model", "model.hidden"},
    {"hidden_size", "model.hidden"},
    {"d_ff", "model.ffn"},
    {"ffn_hidden_size", "model.ffn"},
    {"intermediate_size", "model.ffn"},
    {"vocab_size", "model.vocab"},
    {"save_interval", "checkpoint.every_steps"},
    {"save_steps", "checkpoint.every_steps"},
    {"eval_interval", "eval.every_steps"},
    {"eval_steps", "eval.every_steps"},
    {"eval_iters", "eval.batches"},
    {"log_interval", "log.every_steps"},
    {"logging_steps", "log.every_steps"},
    {"dtype", "precision.compute"},
    {"device", "mesh.device"},
    {"pretrained", "init.from"},
    {"init_from", "init.from"},
    {"model_name_or_path", "init.from"},
};

}  // namespace

std::optional<std::string> key_for_foreign(std::string_view name) {
  std::string plain(name);
  std::replace(plain.begin(), plain.end(), '-', '_');
  const auto* found = std::find_if(std::begin(kNames), std::end(kNames),
                                   [&](const ForeignName& n) { return n.theirs == plain; });
  if (found == std::end(kNames)) return std::nullopt;
  return std::string(found->ours);
}

std::string hint_for_foreign_word(std::string_view key, std::string_view word) {
  if (key == "mesh.device" && (word == "gpu" || word == "gpus" || word == "nvidia"))
    return "NVIDIA GPUs are \"cuda\" (of a program that was built with the preset cuda); \"auto\" "
           "takes them where they are";
  return {};
}

}  // namespace t3d
