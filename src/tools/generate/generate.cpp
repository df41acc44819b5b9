// generate: texts from prompts. Rank 0 reads prompts, chooses tokens and writes texts; all ranks
// compute (job_decoder.hpp).
#include <algorithm>
#include <csignal>

#include "comm/agree.hpp"
#include "run/tokenizer_check.hpp"
#include "tools/commands.hpp"
#include "tools/generate/prompts.hpp"
#include "tools/generate/session.hpp"

namespace t3d {
namespace {

/// What rank 0 knows of the texts to write.
struct Task {
  std::vector<EncodedPrompt> prompts;
  std::unique_ptr<Tokenizer> tokenizer;
  SpecialIds special;
};

void load_tokenizer(const LoadedModel& loaded, Task& task, std::vector<std::string>& notes) {
  task.tokenizer = load_tokenizer_of(loaded.checkpoint, loaded.config, notes);
  if (task.tokenizer->vocab() > loaded.config.model.vocab)
    throw_error(ExitCode::config, "the tokenizer has {} ids, the model {}", task.tokenizer->vocab(),
                loaded.config.model.vocab);
  task.special = special_ids_of(loaded.checkpoint, task.tokenizer.get(), loaded.config.model.vocab);
}

/// With what the model has before a text, and without the end that its tokenizer may put behind
/// one. `begin`: the id for the begin or not; not said = as the tokenizer does it.
std::vector<std::int32_t> ids_of_prompt(const Tokenizer& tokenizer, const SpecialIds& special,
                                        std::optional<bool> begin, const std::string& text) {
  std::vector<std::int32_t> plain = tokenizer.encode(text);
  if (begin) {
    if (*begin && special.bos >= 0) plain.insert(plain.begin(), special.bos);
    return plain;
  }
  std::vector<std::int32_t> ids = tokenizer.encode_document(text);
  const std::int32_t eos = tokenizer.special_ids().eos;
  const bool ends_itself = !plain.empty() && plain.back() == eos;
  if (!ids.empty() && ids.back() == eos && !ends_itself) ids.pop_back();
  return ids;
}

void encode_prompts(const ModelConfig& model, std::optional<bool> document_begin, Task& task) {
  if (document_begin.value_or(false) && task.special.bos < 0)
    throw_error(ExitCode::config, "--document-begin: the tokenizer has no id for it");
  const std::optional<bool> begin = document_begin ? document_begin : task.special.adds_bos;
  for (std::size_t at = 0; at < task.prompts.size(); ++at) {
    EncodedPrompt& prompt = task.prompts[at];
    prompt.ids = ids_of_prompt(*task.tokenizer, task.special, begin, prompt.text);
    if (prompt.ids.empty())
      throw_error(ExitCode::config, "prompt {} is no token for the tokenizer", at + 1);
    if (std::ssize(prompt.ids) > model.context)
      throw_error(ExitCode::config, "prompt {} has {} tokens, the model's context {}", at + 1,
                  prompt.ids.size(), model.context);
  }
}

/// Tokens for which there must be room: the longest text, at most a context.
index_t capacity_for(const Task& task, const GenerateCommand& wish, index_t context) {
  index_t longest = 0;
  for (const EncodedPrompt& prompt : task.prompts)
    longest = std::max(longest, std::ssize(prompt.ids));
  return std::min(context, longest + wish.tokens);
}

SessionTimes write_texts(JobDecoder& model, const Task& task, const GenerateCommand& wish,
                         index_t slots, const std::string& model_name) {
  SessionOptions options;
  const bool greedy = wish.greedy || wish.temperature == 0;
  options.sampling = {greedy ? 1 : wish.temperature, wish.top_k, wish.top_p, greedy, wish.seed};
  options.tokens = wish.tokens;
  options.stops = wish.stops;
  std::erase(options.stops, "");
  if (!wish.ignore_eos) options.ends = task.special.all_ends();
  const bool stream = task.prompts.size() == 1 && !wish.json && !wish.no_stream;
  TextWriter writer(stream, wish.json);
  Session session(model, *task.tokenizer, options, writer, model_name);
  return session.run(task.prompts, slots);
}

void print_times(const SessionTimes& times) {
  const auto rate = [](index_t tokens, double seconds) {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0.0;
  };
  fmt::print(stderr,
             "transformer3d: {} tokens read in {:.2f} s ({:.1f} tokens/s), {} written in {:.2f} s "
             "({:.1f} tokens/s)\n",
             times.read_tokens, times.read_seconds, rate(times.read_tokens, times.read_seconds),
             times.written_tokens, times.write_seconds,
             rate(times.timed_tokens, times.write_seconds));
}

/// The number that rank 0 has.
index_t number_of_first(Communicator& world, index_t number) {
  world.broadcast({&number, DType::i32, 1, 2}, 0).wait_host();  // a number is two words
  return number;
}

}  // namespace

int run_generation(Communicator& world, const CommandLine& command) {
  const GenerateCommand& wish = command.generate;
  const bool first = world.rank() == 0;
  std::signal(SIGPIPE, SIG_IGN);  // a reader who goes away is an error that all ranks end with
  Task task;
  all_or_none(world, [&] {
    if (!first) return;
    for (std::string& text : read_prompts(wish)) task.prompts.push_back({std::move(text), {}});
  });
  const index_t slots = std::min(wish.batch, number_of_first(world, std::ssize(task.prompts)));
  LoadedModel loaded = load_model(world, wish.checkpoint, command.overrides, slots);
  std::vector<std::string> notes;
  all_or_none(world, [&] {
    if (!first) return;
    load_tokenizer(loaded, task, notes);
    encode_prompts(loaded.config.model, wish.document_begin, task);
  });
  print_notes(world, notes);
  const index_t context = loaded.config.model.context;
  const index_t capacity = number_of_first(world, first ? capacity_for(task, wish, context) : 0);
  JobDecoder model(world, loaded, slots, capacity);

  std::optional<Error> fault;
  if (first) {
    try {
      print_times(write_texts(model, task, wish, slots, loaded.checkpoint.path));
    } catch (const std::exception& error) {
      if (model.interrupted()) throw;
      fault = as_error(error);
    }
    model.end();
  } else {
    model.follow();
  }
  agree(world, fault);
  return 0;
}

}  // namespace t3d
