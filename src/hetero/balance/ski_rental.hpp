// When does a costly change of plan pay? Rent or buy: every step under the old plan costs some
// regret (rent), the change costs once (buy), and nobody knows how long the situation lasts. Buying
// as soon as the rent paid has reached the price costs at most twice what one who knows the future
// pays (Karlin, Manasse, Rudolph, Sleator, Algorithmica 3, 1988).
#pragma once
#include <algorithm>
#include <cmath>

namespace t3d {

class SkiRental {
 public:
  /// One step took `seconds`; under the best plan known it would have taken `best_seconds`. True
  /// when the regret since the last change has reached the price. Steps better than the best one
  /// predicted give back what noise had added, but regret does not fall below 0.
  bool observe(double seconds, double best_seconds, double price_seconds) {
    const double regret = seconds - best_seconds;
    if (std::isfinite(regret)) regret_ = std::max(0.0, regret_ + regret);
    return regret_ > 0 && regret_ >= price_seconds;
  }
  /// The plan has changed.
  void restart() { regret_ = 0; }
  [[nodiscard]] double regret_seconds() const { return regret_; }

 private:
  double regret_ = 0;
};

}  // namespace t3d
