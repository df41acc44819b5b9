// The subcommands beside training: inspect, eval.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/counted.hpp"
#include "data/corpus_agreement.hpp"
#include "io/checkpoint/checkpoint.hpp"
#include "io/hdf5/token_file.hpp"
#include "io/output.hpp"
#include "run/setup.hpp"
#include "run/tokenizer_check.hpp"
#include "tools/commands.hpp"
#include "train/step/trainer.hpp"

namespace t3d {

namespace {

std::string describe_token_file(const std::string& path, bool verify) {
  TokenFileReader file(path);
  if (verify) file.verify();
  const TokenFileInfo& info = file.info();
  std::string text = make_token_source({path})->describe();
  for (const auto& [name, id] : {std::pair{"begin", info.special.bos},
                                 {"end", info.special.eos},
                                 {"padding", info.special.pad},
                                 {"unknown", info.special.unknown}})
    if (id >= 0) text += fmt::format("\n{} is id {}", name, id);
  if (!info.special.ends.empty())
    text += fmt::format("\ntexts end with {}", fmt::join(info.special.ends, ", "));
  if (info.partial_loss) text += "\nsome tokens do not count in the loss";
  if (!info.unicode.empty()) text += fmt::format("\ncut by Unicode {}", info.unicode);
  if (info.text_bytes > 0) text += fmt::format("\n{} bytes of text", info.text_bytes);
  if (!info.source.empty()) text += fmt::format("\nfrom {}", info.source);
  return text + (verify ? "\nall blocks verified" : "");
}

std::string describe_tokens(const std::string& path, bool verify) {
  if (path.ends_with(".h5") || is_hdf5_file(path)) return describe_token_file(path, verify);
  return make_token_source({path})->describe();
}

// Of a run folder, or one of checkpoints: the newest, as other commands take it.
std::string describe_folder(const std::string& path, bool verify) {
  const std::string checkpoint = newest_checkpoint(path).path;
  const std::string text = describe_checkpoint(checkpoint, verify);
  return checkpoint == path ? text : fmt::format("the newest checkpoint, {}\n{}", checkpoint, text);
}

// The largest models have thousands of tensors, and checkpoints hold whole inputs.
std::string first_lines(const std::string& text) {
  constexpr std::ptrdiff_t kLines = 10;
  const std::ptrdiff_t all = std::count(text.begin(), text.end(), '\n');
  if (all <= kLines) return text;
  std::size_t end = 0;
  for (std::ptrdiff_t line = 1; line < kLines; ++line) end = text.find('\n', end) + 1;
  return text.substr(0, end) + fmt::format("  ... and {} more lines: --all\n", all - kLines + 1);
}

struct EvalResult {
  std::string checkpoint;
  index_t step, sequences, context;
  double loss, bytes_per_token;  // bytes_per_token: 0 = unknown

  [[nodiscard]] double bits_per_byte() const { return loss / std::log(2.0) / bytes_per_token; }
  [[nodiscard]] std::string text() const {
    std::string text = fmt::format(
        "checkpoint {} (step {})\n{} of {} tokens\nloss {:.6f}  perplexity {:.4f}", checkpoint,
        step, counted(sequences, "sequence"), context, loss, std::exp(loss));
    if (bytes_per_token > 0) text += fmt::format("  bits per byte {:.4f}", bits_per_byte());
    return text + "\n";
  }
  [[nodiscard]] std::string json() const {
    using Json = nlohmann::ordered_json;
    Json object{{"checkpoint", checkpoint}, {"step", step}, {"sequences", sequences},
                {"context", context},       {"loss", loss}, {"perplexity", std::exp(loss)}};
    if (bytes_per_token > 0) object["bits_per_byte"] = bits_per_byte();
    return object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
};

}  // namespace

int run_inspect(Communicator& world, const CommandLine& command) {
  all_or_none(world, [&] {
    if (world.rank() != 0) return;
    const std::string& path = command.inspect.path;
    std::error_code fault;
    const std::filesystem::file_status status = std::filesystem::status(path, fault);
    if (status.type() == std::filesystem::file_type::not_found)
      throw_error(ExitCode::no_input, "there is no {}", path);
    if (fault) throw_error(ExitCode::io, "cannot read {}: {}", path, fault.message());
    const bool folder = std::filesystem::is_directory(status);
    std::string text = folder ? describe_folder(path, command.inspect.verify)
                              : describe_tokens(path, command.inspect.verify);
    if (!text.ends_with('\n')) text += '\n';
    write_output(command.inspect.all ? text : first_lines(text));
    flush_output();
  });
  return 0;
}

int run_evaluation(Communicator& world, const CommandLine& command) {
  const EvalCommand& wish = command.eval;
  LoadedModel loaded = load_model(world, wish.checkpoint, command.overrides, 0);
  Config& config = loaded.config;
  std::shared_ptr<BatchSource> source;
  bool comparable = false;
  std::vector<std::string> notes;
  std::vector<TokenCard> cards =
      share_token_cards(world, *ranks_of_folder(world), {wish.token_file}, config.data.format);
  all_or_none(world, [&] {
    // First: ids that the model does not have may come from another tokenizer.
    comparable = same_tokenizer(tokenizer_of(loaded.checkpoint),
                                tokenizer_of(*make_token_source(cards)), notes);
    source = open_corpus(std::move(cards), config, false);
  });
  agree_on_corpus(world, source->tokens(), "the command line");
  print_notes(world, notes);
  const index_t available = source->samples();
  const index_t total = wish.sequences > 0 ? std::min(wish.sequences, available) : available;
  const double loss = evaluate_model(*loaded.machine, *loaded.formation, *source, total).loss;
  if (!std::isfinite(loss))
    throw AgreedError(
        ExitCode::diverged,
        fmt::format("the loss of {} on {} is {}", loaded.checkpoint.path, wish.token_file, loss));
  // Bits per byte compare texts, which ids of an unknown tokenizer are not.
  const double bytes = comparable ? source->tokens().bytes_per_token() : 0;
  const EvalResult result{loaded.checkpoint.path,
                          loaded.checkpoint.state.step,
                          total,
                          config.model.context,
                          loss,
                          bytes};
  all_or_none(world, [&] {
    if (world.rank() != 0) return;
    write_output(wish.json ? result.json() : result.text());
    flush_output();
  });
  return 0;
}

}  // namespace t3d
