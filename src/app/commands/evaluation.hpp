// The validation sets of a training: after which steps they are evaluated, on how much of them, and
// what is said of their losses.
#pragma once
#include <vector>

#include "app/commands/job_report.hpp"
#include "app/commands/texts.hpp"
#include "app/commands/tokenizer_check.hpp"
#include "app/config/config.hpp"
#include "train/step/trainer.hpp"

namespace t3d {

class Evaluation {
 public:
  /// All of them outlive it.
  Evaluation(const Config& config, const std::vector<ValidationText>& texts,
             const RunTokenizer& tokenizer, Trainer& trainer, JobReport& report)
      : config_(config), texts_(texts), tokenizer_(tokenizer), trainer_(trainer), report_(report) {}

  /// There is one after this step: of those that eval.every_steps says, and of the last.
  [[nodiscard]] bool follows(index_t step) const;
  /// Collective. The losses on `whole` texts, or on the eval.batches first batches of them.
  [[nodiscard]] std::vector<NamedLoss> losses(bool whole);
  /// A line for each of these.
  void tell(const std::vector<NamedLoss>& losses);

 private:
  [[nodiscard]] double bytes_per_token(std::size_t set) const;

  const Config& config_;
  const std::vector<ValidationText>& texts_;
  const RunTokenizer& tokenizer_;
  Trainer& trainer_;
  JobReport& report_;
};

}  // namespace t3d
