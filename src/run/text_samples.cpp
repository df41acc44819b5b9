#include "run/text_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/utf8.hpp"
#include "run/sampling.hpp"

namespace t3d {
namespace {

constexpr index_t kPromptTokens = 16, kNewTokens = 40;
// Below 1: a young model's unlikely words hide what it has learned.
constexpr double kTemperature = 0.8;

/// What is sent while one lives counts on kSamplesAxis.
class OwnAxis {
 public:
  explicit OwnAxis(Ledger& ledger) : ledger_(ledger), before_(ledger) { ledger_.clear(); }
  OwnAxis(const OwnAxis&) = delete;
  OwnAxis& operator=(const OwnAxis&) = delete;
  ~OwnAxis() {
    const Ledger sent = ledger_;
    ledger_ = before_;
    for (const auto& [key, entry] : sent.table()) ledger_.add(key.first, kSamplesAxis, entry);
  }

 private:
  Ledger& ledger_;
  const Ledger before_;
};

/// While one lives, this rank's time is that of an evaluation. The next step gathers its weights
/// anew, so that its bytes do not depend on the samples.
class Passes {
 public:
  explicit Passes(Formation& formation) : formation_(formation) {
    if (!formation.idle()) scope_.emplace(formation.context().clock, "evaluation");
  }
  Passes(const Passes&) = delete;
  Passes& operator=(const Passes&) = delete;
  ~Passes() {
    if (!formation_.idle()) formation_.model().weights_changed();
  }

 private:
  Formation& formation_;
  std::optional<PhaseClock::Scope> scope_;
};

/// In one line, between quotation marks.
std::string quoted(std::string text) {
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos;)
    text.replace(at, 1, "\\n"), at += 2;
  return "\"" + printable(text) + "\"";
}

}  // namespace

TextSamples::TextSamples(Communicator& world, const Config& config,
                         const std::vector<ValidationText>& texts, const RunTokenizer& tokenizer,
                         Trainer& trainer, const std::function<void(const std::string&)>& warn)
    : world_(world), config_(config), trainer_(trainer) {
  if (config.log.samples == 0 || texts.empty()) return;
  source_ = texts.front().source.get();
  std::int32_t known = 0;
  if (world.rank() == 0) {
    try {
      tokenizer_ = tokenizer_of(tokenizer, config.model.vocab);
      ends_ = tokenizer.special.all_ends();
    } catch (const Error&) {  // as if there were none
    }
    if (tokenizer_)
      known = static_cast<std::int32_t>(std::min(tokenizer_->vocab(), config.model.vocab));
    else
      warn("log.samples: no texts, the tokenizer is not known; name it as data.tokenizer");
  }
  world.broadcast({&known, DType::i32, 1, 1}, 0).wait_host();
  known_ = known;
  if (known_ > 0) read_prompts();
}

// All ranks read the same text.
void TextSamples::read_prompts() {
  const index_t context = config_.model.context;
  prompt_ = std::clamp<index_t>(context / 2, 1, kPromptTokens);
  tokens_ = std::min(kNewTokens, context - prompt_ + 1);
  count_ = std::min(config_.log.samples, source_->samples());
  Ids ids(static_cast<std::size_t>(context)), targets(ids.size());
  for (index_t number = 0; number < count_; ++number) {
    source_->read(number, 1, ids.data(), targets.data());
    prompts_.emplace_back(ids.begin(), ids.begin() + prompt_);
  }
}

bool TextSamples::computes() const {
  const Formation& formation = trainer_.formation();
  return !formation.idle() && formation.coord().d == 0;
}

/// One rank, so that machines whose exponentials differ in the last bit cannot go different ways.
bool TextSamples::chooses() const {
  const Coord& coord = trainer_.formation().coord();
  return coord.i == 0 && coord.j == 0 && coord.k == 0;
}

/// What is kept of so many texts is no more than what a block keeps of one micro-batch.
index_t TextSamples::slots_at_a_time() const {
  const index_t most = evaluation_micro(trainer_.plan()) * config_.model.context;
  return std::clamp<index_t>(most / (2 * (prompt_ + tokens_)), 1, count_);
}

std::vector<std::string> TextSamples::write(Interruption& interruption) {
  if (count_ == 0) return {};
  const OwnAxis axis(world_.ledger());
  const Passes passes(trainer_.formation());
  added_.assign(prompts_.size(), {});
  const index_t most = slots_at_a_time();
  for (index_t first = 0; first < count_; first += most)
    if (!continue_texts(first, std::min(most, count_ - first), interruption)) return {};
  std::vector<std::string> lines;
  for (std::size_t number = 0; number < prompts_.size() && tokenizer_; ++number)
    lines.push_back(line(number));
  return lines;
}

bool TextSamples::continue_texts(index_t first, index_t slots, Interruption& interruption) {
  std::optional<Decoder> decoder;
  if (computes())
    decoder.emplace(trainer_.formation().context(), trainer_.formation().model(), slots,
                    prompt_ + tokens_ - 1);
  const SamplingOptions sampling{kTemperature};
  const index_t vocab = config_.model.vocab;
  Ids next(static_cast<std::size_t>(slots));
  for (index_t token = 0; token < tokens_; ++token) {
    if (interruption.is_due()) interruption.agree();
    if (interruption.stop() != kNoFlag) return false;
    std::fill(next.begin(), next.end(), 0);
    if (decoder) {
      const std::vector<float> logits = compute(*decoder, first, slots);
      for (index_t slot = 0; slot < slots && chooses(); ++slot) {
        const std::span<const float> row(logits.data() + slot * vocab,
                                         static_cast<std::size_t>(known_));
        next[static_cast<std::size_t>(slot)] = choose_token(row, sampling, first + slot, token);
      }
    }
    interruption.pass_begun();
    world_.all_reduce({next.data(), DType::i32, 1, slots}, ReduceOp::bit_or).wait_host();
    for (index_t slot = 0; slot < slots; ++slot)
      added_[static_cast<std::size_t>(first + slot)].push_back(
          next[static_cast<std::size_t>(slot)]);
  }
  return true;
}

/// The logits after the last token of each text.
std::vector<float> TextSamples::compute(Decoder& decoder, index_t first, index_t slots) const {
  std::vector<Decoder::Prompt> prompts;
  std::vector<Decoder::Next> tokens;
  for (index_t slot = 0; slot < slots; ++slot) {
    const auto number = static_cast<std::size_t>(first + slot);
    if (added_[number].empty())
      prompts.push_back({slot, prompts_[number]});
    else
      tokens.push_back({slot, added_[number].back()});
  }
  return tokens.empty() ? decoder.read(prompts) : decoder.go_on(tokens);
}

/// The text ends where the model ends a document. The prompt's ids go through the stream too: what
/// comes behind them may depend on them.
std::string TextSamples::line(std::size_t number) const {
  const auto stream = tokenizer_->stream(Specials::skip);
  std::string prompt, text;
  for (const std::int32_t id : prompts_[number])
    if (id < known_) prompt += stream->feed(id);
  for (const std::int32_t id : added_[number]) {
    if (std::ranges::find(ends_, id) != ends_.end()) break;
    text += stream->feed(id);
  }
  text += stream->finish();
  return fmt::format("sample {}: {} goes on {}", number + 1, quoted(prompt), quoted(text));
}

}  // namespace t3d
