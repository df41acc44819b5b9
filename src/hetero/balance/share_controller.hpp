// ShareController: units of the batch (sequences) per replica for the next step, from what the last
// one took. All ranks feed it the same numbers and get the same answer. Others to compare it with
// are in bench/baselines (docs/decisions/012).
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "core/words.hpp"

namespace t3d {

enum class BalanceKind { off, model };
template <>
struct Words<BalanceKind> {
  static constexpr std::array<std::string_view, 2> all{"off", "model"};
};

/// One step as a replica saw it.
struct ReplicaTimes {
  double compute_seconds = 0;  // own time of its slowest rank, without waiting
  double fixed_seconds = 0;    // of them, what does not depend on its units (optimizer, messages)
  double predicted_speed = 0;  // units per second in the next step; 0 = no prediction, and
                               // without units: it can do no work
};

struct ShareLimits {
  index_t total = 0;            // units to deal
  index_t least = 0;            // per replica
  std::vector<index_t> most{};  // by replica (memory); empty = none
  friend bool operator==(const ShareLimits&, const ShareLimits&) = default;
};

/// What comes nearest to shares that were dealt, of those that can be had; the same sum. Empty: all
/// can be had.
using PossibleShares = std::function<std::vector<index_t>(const std::vector<index_t>& shares)>;

struct BalanceOptions {
  BalanceKind kind = BalanceKind::model;
  index_t every = 1;        // steps between two looks
  index_t window = 5;       // steps of a median
  index_t confirm = 3;      // evaluations that must agree before a change (regime.hpp)
  double min_gain = 0.02;   // of the step's time
  double tolerance = 0.05;  // ranks within this of each other are equal
};

class ShareController {
 public:
  virtual ~ShareController() = default;
  /// After a step with `shares` in force, as many as there are replicas, in every call. The shares
  /// for the next step, within the limits, or nothing: they stay. A time that is not finite or
  /// below 0 is no measurement. Throws Error(config) where the limits leave no solution.
  [[nodiscard]] virtual std::optional<std::vector<index_t>> observe(
      std::span<const ReplicaTimes> replicas, std::span<const index_t> shares) = 0;
  /// Other limits from now on; what was learned stays.
  virtual void limit(const ShareLimits& limits) = 0;
  /// The last proposal was not made, or others have taken it back.
  virtual void drop_proposal() {}
  /// One line, why the last answer was what it was; for the log.
  [[nodiscard]] virtual std::string reason() const = 0;
};

/// Exact min-max shares of measured models, changed when that pays.
[[nodiscard]] std::unique_ptr<ShareController> make_model_controller(const BalanceOptions& options,
                                                                     const ShareLimits& limits,
                                                                     PossibleShares possible = {});

}  // namespace t3d
