// The next speed is the median of the last few, or of the last one alone.
#include "baselines/speed_predictor.hpp"
#include "core/robust.hpp"

namespace t3d {
namespace {

class MedianPredictor : public SpeedPredictor {
 public:
  MedianPredictor(std::size_t signals, std::size_t window)
      : SpeedPredictor(signals), window_(window) {}
  [[nodiscard]] double predict() const override { return median_of(speeds_); }

 protected:
  void learn(double speed, std::span<const double>) override {
    if (speeds_.size() == window_) speeds_.erase(speeds_.begin());
    speeds_.push_back(speed);
  }

 private:
  std::size_t window_;
  std::vector<double> speeds_;
};

}  // namespace

std::unique_ptr<SpeedPredictor> make_median(std::size_t signals, std::size_t window) {
  return std::make_unique<MedianPredictor>(signals, window);
}

}  // namespace t3d
