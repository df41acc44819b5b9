// log.jsonl as it grows: reads only what has been added since the last look.
#pragma once
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/types.hpp"
#include "io/lives/missing_steps.hpp"

namespace t3d {

struct FollowedStep {
  static constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();
  index_t step = 0, steps = 0;  // steps: 0 = not known
  double loss = kNotKnown, grad_norm = kNotKnown, lr = kNotKnown, seconds = kNotKnown,
         tokens_per_second = kNotKnown, mfu = kNotKnown, comm_fraction = kNotKnown,
         imbalance = kNotKnown;
};

/// Milliseconds that each rank computed in a step, without waiting.
struct FollowedRanks {
  index_t step = 0;
  std::vector<double> own;
};

class StepFollower {
 public:
  /// Of a longer file, `most_bytes` at the end are read.
  explicit StepFollower(std::string path, index_t most_bytes = index_t{64} << 20);
  /// Reads what has been added; begins anew where the file is another one than before (a run that
  /// was continued). A line that is not complete is read later. Error(io).
  void read_on();

  /// In the part that was read.
  [[nodiscard]] const MissingSteps& missing() const { return missing_; }
  /// Finite losses by step, as they stand in the file.
  [[nodiscard]] const std::vector<std::pair<index_t, double>>& losses() const { return losses_; }
  [[nodiscard]] const std::optional<FollowedStep>& last() const { return last_; }
  /// The last that were gathered.
  [[nodiscard]] const std::optional<FollowedRanks>& ranks() const { return ranks_; }

 private:
  void take(const std::string& line);
  void forget();

  std::string path_;
  index_t most_bytes_, offset_ = 0;
  std::string last_line_;  // with its newline: stands before offset_ while the file is the same
  std::vector<std::pair<index_t, double>> losses_;
  std::optional<FollowedStep> last_;
  std::optional<FollowedRanks> ranks_;
  MissingSteps missing_;
};

}  // namespace t3d
