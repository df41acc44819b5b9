// The next speed is the last one.
#include "hetero/predict/clean_predictor.hpp"

namespace t3d {
namespace {

class LastPredictor : public CleanPredictor {
 public:
  using CleanPredictor::CleanPredictor;
  [[nodiscard]] double predict() const override { return speed_; }
  [[nodiscard]] PredictorKind kind() const override { return PredictorKind::last; }

 protected:
  void learn(double speed, std::span<const double>) override { speed_ = speed; }

 private:
  double speed_ = 0;
};

}  // namespace

std::unique_ptr<SpeedPredictor> make_last(std::size_t signals) {
  return std::make_unique<LastPredictor>(signals);
}

}  // namespace t3d
