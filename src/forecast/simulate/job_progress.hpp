// What a job has trained, what of it is safe, and what a loss takes away.
#pragma once
#include <algorithm>

namespace t3d {

class JobProgress {
 public:
  [[nodiscard]] double samples() const { return now_.samples; }
  /// Seconds of training that has not been lost.
  [[nodiscard]] double useful_seconds() const { return now_.seconds; }
  [[nodiscard]] double lost_seconds() const { return lost_; }
  /// Of training since the newest checkpoint that counts.
  [[nodiscard]] double unsaved_seconds() const { return now_.seconds - safe_.seconds; }

  void train(double seconds, double samples_per_second) {
    now_.seconds += seconds;
    now_.samples += seconds * samples_per_second;
  }
  /// A checkpoint of what there is now begins; it counts from publish() on.
  void snapshot() { written_ = now_; }
  void publish() { safe_ = written_; }

  /// Back to the newest checkpoint that counts.
  void roll_back() {
    lost_ += unsaved_seconds();
    now_ = safe_;
  }
  /// The last `seconds` of training are done again (or were not training); not what is safe.
  /// Returns how many they were.
  double take_back(double seconds, double samples_per_second) {
    const double taken = std::min(seconds, unsaved_seconds());
    now_.seconds -= taken;
    now_.samples = std::max(now_.samples - taken * samples_per_second, safe_.samples);
    return taken;
  }
  void lose(double seconds, double samples_per_second) {
    lost_ += take_back(seconds, samples_per_second);
  }

 private:
  struct Mark {
    double samples = 0, seconds = 0;
  };
  Mark now_, safe_, written_;
  double lost_ = 0;
};

}  // namespace t3d
