// The next speed is that of the trainer's own tracker of times (hetero/balance/regime.hpp).
#include "hetero/balance/regime.hpp"

#include "baselines/speed_predictor.hpp"

namespace t3d {
namespace {

class RegimePredictor : public SpeedPredictor {
 public:
  using SpeedPredictor::SpeedPredictor;
  [[nodiscard]] double predict() const override {
    return tracker_.level() > 0 ? 1 / tracker_.level() : 0;
  }

 protected:
  void learn(double speed, std::span<const double>) override {
    (void)tracker_.observe(1 / speed, now_ += 1 / speed);
  }

 private:
  RegimeTracker tracker_;
  double now_ = 0;
};

}  // namespace

std::unique_ptr<SpeedPredictor> make_regime(std::size_t signals) {
  return std::make_unique<RegimePredictor>(signals);
}

}  // namespace t3d
