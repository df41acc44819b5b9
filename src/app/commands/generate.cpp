// generate: text from a prompt. Every token runs the whole context again (no cache of keys and
// values): right on any cuboid, and fast enough for samples.
#include <algorithm>
#include <cmath>

#include "app/commands/commands.hpp"
#include "app/commands/setup.hpp"
#include "app/commands/tokenizer_check.hpp"
#include "io/output.hpp"

namespace t3d {
namespace {

struct WeightedToken {
  std::int32_t id;
  double weight;
};

// The candidates that top-k and top-p leave, likeliest first, with their weights.
std::vector<WeightedToken> candidates(const std::vector<float>& logits,
                                      const GenerateCommand& wish) {
  const float highest = *std::max_element(logits.begin(), logits.end());
  std::vector<WeightedToken> all;
  double total = 0;
  for (std::size_t id = 0; id < logits.size(); ++id) {
    const double weight = std::exp(static_cast<double>(logits[id] - highest) / wish.temperature);
    all.push_back({static_cast<std::int32_t>(id), weight});
    total += weight;
  }
  std::stable_sort(all.begin(), all.end(), [](const WeightedToken& a, const WeightedToken& b) {
    return a.weight > b.weight;
  });
  if (wish.top_k > 0 && wish.top_k < std::ssize(all))
    all.resize(static_cast<std::size_t>(wish.top_k));
  if (wish.top_p < 1) {
    double sum = 0;
    std::size_t kept = 0;
    while (kept < all.size() && sum < wish.top_p * total) sum += all[kept++].weight;
    all.resize(std::max<std::size_t>(1, kept));
  }
  return all;
}

std::int32_t choose(const std::vector<float>& logits, const GenerateCommand& wish, index_t number) {
  if (wish.greedy || wish.temperature <= 0)
    return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) -
                                     logits.begin());
  const std::vector<WeightedToken> left = candidates(logits, wish);
  double total = 0;
  for (const WeightedToken& candidate : left) total += candidate.weight;
  const RandomKey key{static_cast<std::uint64_t>(wish.seed), stream_of("generate")};
  double at = static_cast<double>(random_uniform(key, number)) * total;
  for (const WeightedToken& candidate : left) {
    at -= candidate.weight;
    if (at < 0) return candidate.id;
  }
  return left.back().id;
}

class Generator {
 public:
  Generator(LoadedModel& loaded, const GenerateCommand& wish)
      : loaded_(loaded), wish_(wish), length_(loaded.config.model.context) {}

  std::int32_t next(const std::vector<std::int32_t>& ids, index_t number) {
    // The last `length` tokens, padded behind: a causal model does not see the padding.
    const index_t n = std::min<index_t>(std::ssize(ids), length_);
    std::vector<std::int32_t> window(ids.end() - n, ids.end());
    window.resize(static_cast<std::size_t>(length_), 0);
    Transformer& model = loaded_.formation->model();
    const index_t i = loaded_.formation->coord().i;
    const Partition slabs = model.shape().tokens(1, length_);
    const auto first = static_cast<std::size_t>(slabs.begin(i));
    const auto count = static_cast<std::size_t>(slabs.size(i));
    MicroBatch batch;
    batch.sequences = 1;
    batch.ids = std::span<const std::int32_t>(window).subspan(first, count);
    batch.targets = batch.ids;
    PassInfo pass;
    pass.length = length_;
    const std::vector<float> logits = model.next_logits(batch, pass, n - 1);
    if (std::any_of(logits.begin(), logits.end(), [](float x) { return std::isnan(x); }))
      throw AgreedError(ExitCode::diverged,
                        fmt::format("the logits of {} are no numbers", loaded_.checkpoint.path));
    return choose(logits, wish_, number);
  }

 private:
  LoadedModel& loaded_;
  const GenerateCommand& wish_;
  index_t length_;
};

// Prints what `text` has beyond what was printed, keeping back an unfinished UTF-8 character.
void print_new(const std::string& text, std::size_t& printed, bool last) {
  std::size_t end = text.size();
  if (!last) {
    std::size_t start = end;
    while (start > printed && (static_cast<unsigned char>(text[start - 1]) & 0xC0U) == 0x80U)
      --start;
    if (start > printed && (static_cast<unsigned char>(text[start - 1]) & 0x80U) != 0)
      end = start - 1;
  }
  if (end <= printed) return;
  write_output(std::string_view(text).substr(printed, end - printed));
  flush_output();
  printed = end;
}

}  // namespace

int run_generation(Communicator& world, const CommandLine& command) {
  const GenerateCommand& wish = command.generate;
  LoadedModel loaded = load_model(world, wish.checkpoint, command.overrides, 1);
  std::unique_ptr<Tokenizer> tokenizer;
  std::vector<std::int32_t> ids;
  std::vector<std::string> notes;
  all_or_none(world, [&] {
    tokenizer = load_tokenizer_of(loaded.checkpoint, loaded.config, notes);
    if (tokenizer->vocab() > loaded.config.model.vocab)
      throw_error(ExitCode::config, "the tokenizer has {} ids, the model {}", tokenizer->vocab(),
                  loaded.config.model.vocab);
    ids = tokenizer->encode(wish.prompt.empty() ? "\n" : wish.prompt);
  });
  print_notes(world, notes);
  Generator generator(loaded, wish);
  std::size_t printed = 0;
  const auto print = [&](bool last) {
    all_or_none(world, [&] {
      if (world.rank() != 0) return;
      print_new(tokenizer->decode(ids), printed, last);
      if (!last) return;
      write_output("\n");
      flush_output();
    });
  };
  for (index_t number = 0; number < wish.tokens; ++number) {
    ids.push_back(generator.next(ids, number));
    // Ids that only the model has (a vocabulary padded upwards) mean nothing to the tokenizer.
    if (ids.back() >= tokenizer->vocab()) ids.pop_back();
    print(false);
  }
  print(true);
  return 0;
}

}  // namespace t3d
