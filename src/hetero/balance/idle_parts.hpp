// IdleParts: the parts of the batch that have no units. No step measures them; what a unit would
// take there is known from before, and now and then one of them is tried with a unit, since it may
// have become fast. Pure arithmetic, the same on every rank.
#pragma once
#include "hetero/balance/deal.hpp"

namespace t3d {

class IdleParts {
 public:
  /// `known`: seconds of a unit by part, in any scale; 0 = not known (as the others), infinity = it
  /// can do no work and is never tried. `least_wait`: steps before a part is tried.
  IdleParts(std::vector<double> known, index_t least_wait);

  /// After every measured step. Remembers what units take, and sets the predicted speed of parts
  /// without any: 0 where they can do no work.
  void observe(std::span<ReplicaTimes> parts, std::span<const index_t> units);

  /// The shares with one unit for a part that has none and has waited for long enough: at least
  /// `least_wait` steps, and so long that the steps of the try, if the part is as slow as is
  /// thought, lose no more than a tenth of the wait. Each try in vain doubles the wait, up to 16
  /// times.
  [[nodiscard]] std::optional<Shares> due(std::span<const ReplicaTimes> parts,
                                          std::span<const index_t> units,
                                          const ShareLimits& limits);
  /// What due() gave takes effect, as `after` (micro-batches may allow only other shares).
  void begin(std::span<const index_t> before, std::span<const index_t> after);

  /// A try is on; nobody else is to change the shares.
  [[nodiscard]] bool trying() const { return try_.has_value(); }
  /// After a measured step of a try. The shares from before it, where the part is slower than all
  /// others twice; nothing where it goes on, or has ended well.
  [[nodiscard]] std::optional<Shares> judge(std::span<const ReplicaTimes> parts,
                                            std::span<const index_t> units);

 private:
  struct Part {
    double known = 0;
    std::vector<double> costs;  // of a unit in its last measured steps
    double waited = 0;          // seconds without units, since the last try
    int tries = 0;              // in vain, in succession
  };
  struct Try {
    std::size_t part = 0;
    Shares before, after;
    index_t looks = 0;
    double cost = 0;  // the least of them
  };
  void calibrate(std::span<const index_t> units);
  [[nodiscard]] double cost(const Part& part) const;
  [[nodiscard]] double wait(const Part& part, double fixed, double longest) const;

  std::vector<Part> parts_;
  index_t least_wait_;
  index_t looks_ = 0;
  double scale_ = 1, usual_ = 0;  // known to measured; of a unit in the median part
  std::optional<Try> try_;
};

}  // namespace t3d
