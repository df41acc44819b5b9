#include "app/commands/evaluation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace t3d {

bool Evaluation::follows(index_t step) const {
  const bool last = step == trainer_.progress().steps && trainer_.ended();
  return !texts_.empty() &&
         (last || (config_.eval.every_steps > 0 && step % config_.eval.every_steps == 0));
}

std::vector<NamedLoss> Evaluation::losses(bool whole) {
  std::vector<NamedLoss> losses;
  for (const ValidationText& text : texts_) {
    const index_t available = text.source->samples();
    index_t sequences = config_.eval.batches * trainer_.plan().sequences();
    sequences = whole ? available : std::min(sequences, available);
    report_.expect(trainer_.predicted_evaluation(sequences));
    losses.push_back({text.name, trainer_.evaluate(*text.source, sequences)});
  }
  return losses;
}

/// 0 = the text is not known to be of the run's tokenizer.
double Evaluation::bytes_per_token(std::size_t set) const {
  const bool known = set < tokenizer_.scores_valid.size() && tokenizer_.scores_valid[set];
  return known ? texts_[set].source->tokens().bytes_per_token() : 0;
}

void Evaluation::tell(const std::vector<NamedLoss>& losses) {
  for (std::size_t set = 0; set < losses.size(); ++set) {
    const NamedLoss& valid = losses[set];
    std::string text =
        fmt::format("validation {}loss {:.4f}  perplexity {:.2f}",
                    valid.name.empty() ? "" : valid.name + " ", valid.loss, std::exp(valid.loss));
    if (const double bytes = bytes_per_token(set); bytes > 0)
      text += fmt::format("  bits per byte {:.4f}", valid.loss / std::log(2.0) / bytes);
    report_.note(text);
  }
}

}  // namespace t3d
