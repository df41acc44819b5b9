// The subcommands beside training: tokenize, inspect, eval.
#include <cmath>
#include <filesystem>

#include "app/commands/commands.hpp"
#include "app/commands/setup.hpp"
#include "data/tokenize.hpp"
#include "io/checkpoint/checkpoint.hpp"
#include "io/hdf5/token_file.hpp"
#include "train/step/trainer.hpp"

namespace t3d {

int run_tokenize(Communicator& world, const CommandLine& command) {
  all_or_none(world, [&] {
    if (world.rank() != 0) return;
    const TokenizeCommand& wish = command.tokenize;
    const TokenizeResult result = tokenize_corpus(wish.inputs, wish.prefix, wish.options);
    fmt::print("{}: {} tokens\n", result.train_path, result.train_tokens);
    if (!result.valid_path.empty())
      fmt::print("{}: {} tokens\n", result.valid_path, result.valid_tokens);
    fmt::print("vocabulary {}, {} bytes of text\n", result.vocab, result.text_bytes);
  });
  return 0;
}

namespace {

std::string describe_tokens(const std::string& path, bool verify) {
  TokenFileReader file(path);
  if (verify) file.verify();
  return fmt::format("{}{}", make_token_source({path})->describe(),
                     verify ? "\nall blocks verified" : "");
}

}  // namespace

int run_inspect(Communicator& world, const CommandLine& command) {
  all_or_none(world, [&] {
    if (world.rank() != 0) return;
    const std::string& path = command.inspect.path;
    if (!std::filesystem::exists(path)) throw_error(ExitCode::no_input, "there is no {}", path);
    const std::string text = std::filesystem::is_directory(path)
                                 ? describe_checkpoint(path, command.inspect.verify)
                                 : describe_tokens(path, command.inspect.verify);
    fmt::print("{}{}", text, text.ends_with('\n') ? "" : "\n");
  });
  return 0;
}

int run_evaluation(Communicator& world, const CommandLine& command) {
  const EvalCommand& wish = command.eval;
  LoadedModel loaded = load_model(world, wish.checkpoint, command.overrides, 0);
  Config& config = loaded.config;
  std::shared_ptr<BatchSource> source;
  all_or_none(world, [&] { source = open_corpus({wish.token_file}, config, false); });
  const index_t available = source->ledger().samples();
  const index_t total = wish.sequences > 0 ? std::min(wish.sequences, available) : available;
  const double loss = evaluate_model(*loaded.machine, *loaded.formation, *source, total);
  if (world.rank() != 0) return 0;
  fmt::print("checkpoint {} (step {})\n", loaded.checkpoint.path, loaded.checkpoint.state.step);
  fmt::print("{} sequences of {} tokens\n", total, config.model.context);
  fmt::print("loss {:.6f}  perplexity {:.4f}", loss, std::exp(loss));
  const double bytes = source->tokens().bytes_per_token();
  if (bytes > 0) fmt::print("  bits per byte {:.4f}", loss / std::log(2.0) / bytes);
  fmt::print("\n");
  return 0;
}

}  // namespace t3d
