// The validation sets of a training: after which steps they are evaluated, on how much of them, and
// what is said of their losses.
#pragma once
#include <functional>
#include <vector>

#include "config/config.hpp"
#include "run/job_report.hpp"
#include "run/text_samples.hpp"
#include "run/texts.hpp"
#include "run/tokenizer_check.hpp"
#include "train/step/trainer.hpp"

namespace t3d {

class Evaluation {
 public:
  /// This rank's wishes to stop, bits of kStopFlags.
  using Wishes = std::function<unsigned()>;
  /// Collective. All of them outlive it.
  Evaluation(Communicator& world, const Config& config, const std::vector<ValidationText>& texts,
             const RunTokenizer& tokenizer, Trainer& trainer, JobReport& report, Wishes wishes)
      : world_(world),
        config_(config),
        texts_(texts),
        tokenizer_(tokenizer),
        trainer_(trainer),
        report_(report),
        wishes_(std::move(wishes)),
        samples_(world, config, texts, tokenizer, trainer,
                 [&report](const std::string& text) { report.warn(text); }) {}

  /// There is one after this step: of those that eval.every_steps says, and of the last.
  [[nodiscard]] bool follows(index_t step) const;
  struct Result {
    std::vector<NamedLoss> losses;     // of all sets; empty where it was broken off before
    std::vector<std::string> samples;  // a line for each text of log.samples, on rank 0
    unsigned stop = kNoFlag;           // what broke it off: of kStopFlags, the same on all ranks
    double deaf_seconds = 0;           // the longest time in which no wish was heard
    [[nodiscard]] bool lacks_losses() const { return stop != kNoFlag && losses.empty(); }
  };
  /// Collective. Of the last one of a run the `whole` texts, else the eval.batches first batches of
  /// them. Who asks to stop is heard about once a second, and breaks it off.
  [[nodiscard]] Result evaluate(bool whole);
  /// The evaluation after the last step was broken off, or killed, in the life before. Collective.
  [[nodiscard]] bool is_owed() const;
  /// A line for each of its losses and texts.
  void tell(const Result& result);

 private:
  [[nodiscard]] double bytes_per_token(std::size_t set) const;

  Communicator& world_;
  const Config& config_;
  const std::vector<ValidationText>& texts_;
  const RunTokenizer& tokenizer_;
  Trainer& trainer_;
  JobReport& report_;
  const Wishes wishes_;
  TextSamples samples_;
};

}  // namespace t3d
