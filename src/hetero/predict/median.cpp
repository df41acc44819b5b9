// The next speed is the median of the last five.
#include "core/robust.hpp"
#include "hetero/predict/clean_predictor.hpp"

namespace t3d {
namespace {

constexpr std::size_t kWindow = 5;

class MedianPredictor : public CleanPredictor {
 public:
  using CleanPredictor::CleanPredictor;
  [[nodiscard]] double predict() const override { return median_of(speeds_); }
  [[nodiscard]] PredictorKind kind() const override { return PredictorKind::median; }

 protected:
  void learn(double speed, std::span<const double>) override {
    if (speeds_.size() == kWindow) speeds_.erase(speeds_.begin());
    speeds_.push_back(speed);
  }

 private:
  std::vector<double> speeds_;
};

}  // namespace

std::unique_ptr<SpeedPredictor> make_median(std::size_t signals) {
  return std::make_unique<MedianPredictor>(signals);
}

}  // namespace t3d
