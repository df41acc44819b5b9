#include "run/evaluation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "io/json_fields.hpp"
#include "io/lives/life_files.hpp"
#include "io/log_tail.hpp"

namespace t3d {

bool Evaluation::follows(index_t step) const {
  const bool last = step == trainer_.progress().steps && trainer_.ended();
  return !texts_.empty() &&
         (last || (config_.eval.every_steps > 0 && step % config_.eval.every_steps == 0));
}

Evaluation::Result Evaluation::evaluate(bool whole) {
  Result result;
  Interruption interruption(world_, wishes_);
  for (const ValidationText& text : texts_) {
    const index_t available = text.source->samples();
    index_t sequences = config_.eval.batches * trainer_.plan().sequences();
    sequences = whole ? available : std::min(sequences, available);
    const index_t agreed = interruption.agreements();
    const EvaluatedLoss loss = trainer_.evaluate(*text.source, sequences, &interruption);
    report_.expect(
        trainer_.predicted_evaluation(sequences, loss.rounds, interruption.agreements() - agreed));
    if (interruption.stop() != kNoFlag) break;
    result.losses.push_back({text.name, loss.loss, sequences == available});
  }
  if (interruption.stop() != kNoFlag)
    result.losses.clear();  // some sets only
  else
    result.samples = samples_.write(interruption);
  result.stop = interruption.stop();
  result.deaf_seconds = interruption.longest_seconds();
  return result;
}

namespace {

/// The life before came to the end of its steps, and to no end of the evaluation after them.
bool lacks_last_loss(const std::string& dir, index_t step) {
  const std::vector<LifeRecord> lives = last_lives(dir, 1);
  if (lives.empty() || lives.back().code == static_cast<int>(ExitCode::done)) return false;
  const std::vector<std::string> lines = last_lines(dir + "/log.jsonl", 1);
  const auto last = lines.empty() ? std::nullopt : parse_object(lines.back());
  if (!last || count_of(*last, "step") != step) return true;
  // Logs of earlier versions have no words for whole sets.
  const auto has = [&](const char* key) { return last->contains(key); };
  return !has("valid_loss_whole") && !has("valid_losses_whole") && !has("valid_loss") &&
         !has("valid_losses");
}

}  // namespace

bool Evaluation::is_owed() const {
  std::int32_t owed = 0;
  const index_t done = trainer_.progress().steps;
  if (world_.rank() == 0 && follows(done) && done == trainer_.steps()) try {
      owed = lacks_last_loss(config_.run.dir, done) ? 1 : 0;
    } catch (const Error&) {  // nobody knows: the training is done all the same
    }
  world_.broadcast({&owed, DType::i32, 1, 1}, 0).wait_host();
  return owed != 0;
}

/// 0 = the text is not known to be of the run's tokenizer.
double Evaluation::bytes_per_token(std::size_t set) const {
  const bool known = set < tokenizer_.scores_valid.size() && tokenizer_.scores_valid[set];
  return known ? texts_[set].source->tokens().bytes_per_token() : 0;
}

void Evaluation::tell(const Result& result) {
  for (std::size_t set = 0; set < result.losses.size(); ++set) {
    const NamedLoss& valid = result.losses[set];
    std::string text =
        fmt::format("validation {}loss {:.4f}  perplexity {:.2f}",
                    valid.name.empty() ? "" : valid.name + " ", valid.loss, std::exp(valid.loss));
    if (const double bytes = bytes_per_token(set); bytes > 0)
      text += fmt::format("  bits per byte {:.4f}", valid.loss / std::log(2.0) / bytes);
    text += valid.whole ? "  (whole set)" : "  (first batches)";
    report_.note(text);
  }
  for (const std::string& text : result.samples) report_.note(text);
}

}  // namespace t3d
