// Holes of a log of steps: after a full disk, where somebody edited or cut the file, or where
// log.json was off for a life.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/types.hpp"

namespace t3d {

/// Both included.
struct StepRange {
  index_t first = 0, last = 0;
  friend bool operator==(const StepRange&, const StepRange&) = default;
};

/// Hears the steps of a log in their order, and knows those between them that it has not heard.
class MissingSteps {
 public:
  static constexpr std::size_t kMostRanges = 1000;  // that are kept

  /// Steps count from behind `last`; without it from the first one that is heard.
  explicit MissingSteps(std::optional<index_t> last = {}) : last_(last) {}

  /// What is known of the steps up to one of them: of `holes`, with `count` steps, the first ones.
  MissingSteps(index_t last, std::vector<StepRange> ranges, index_t holes, index_t count)
      : last_(last), ranges_(std::move(ranges)), holes_(holes), count_(count) {}

  /// The hole before `step`, if there is one. What is not behind the step before is passed over.
  std::optional<StepRange> add(index_t step);
  /// These are missing; behind those that are known to be.
  void miss(const StepRange& range);
  /// All steps up to this one should be there. Nothing where no step was heard and none is known.
  void expect_up_to(index_t step) {
    if (!last_ || step <= *last_) return;
    miss({*last_ + 1, step});
    last_ = step;
  }

  [[nodiscard]] std::optional<index_t> last() const { return last_; }
  [[nodiscard]] const std::vector<StepRange>& ranges() const { return ranges_; }
  /// All, also those whose ranges are not kept.
  [[nodiscard]] index_t holes() const { return holes_; }
  /// Of steps, also of those whose ranges are not kept.
  [[nodiscard]] index_t count() const { return count_; }
  /// "step 3", "steps 3, 5 to 9 and 12"; of many ranges the first ones. Empty where none is
  /// missing.
  [[nodiscard]] std::string text() const;

 private:
  std::optional<index_t> last_;
  std::vector<StepRange> ranges_;
  index_t holes_ = 0, count_ = 0;
};

/// The step of a line of log.jsonl; nothing where the line is no record. Of a line as the program
/// writes it only the beginning and the end are looked at.
[[nodiscard]] std::optional<index_t> step_of_line(std::string_view line);

}  // namespace t3d
