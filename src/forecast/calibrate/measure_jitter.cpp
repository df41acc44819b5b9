#include "forecast/calibrate/measure_jitter.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/phase_clock.hpp"
#include "core/robust.hpp"
#include "core/thread_clock.hpp"
#include "forecast/calibrate/operator_run.hpp"
#include "forecast/cluster/meeting.hpp"
#include "hetero/speed/sampler.hpp"

namespace t3d {
namespace {

constexpr double kLong = 10;  // times kJitterPiece: the pieces that say what length does
constexpr int kBatches = 9, kFewest = 4, kMost = 200;  // medians of so many; pieces in one
constexpr double kExtent = 192;                        // of the square product

/// Ranks that compute a piece each, and meet.
class Meetings {
 public:
  Meetings(const ProbeMachine& machine, Communicator& group, double slowdown)
      : machine_(machine),
        group_(group),
        slowdown_(slowdown),
        number_(machine.device, DType::f64, 1, 1, MemoryKind::workspace),
        product_(operator_run(machine, OperatorKind::matmul, ComputeType::fp32,
                              {kExtent, kExtent, kExtent, 0, 0}, 0)) {
    for (int call = 0; call < 3; ++call) (void)timed(machine_.queue, product_, 1);
    once_ = timed(machine_.queue, product_, 8) / 8;
  }
  /// Pieces of about so many seconds, as many products on every rank.
  void set_piece(double seconds) {
    products_ = static_cast<int>(std::clamp(std::ceil(seconds / once_), 1.0, 1e6));
    products_ = static_cast<int>(largest(products_));
  }
  double largest(double own) {
    machine_.ops.fill(machine_.queue, number_, own);
    meet();
    double result = 0;
    const TensorView from = number_;
    machine_.device.copy(&result, from.data, sizeof result, machine_.queue);
    machine_.queue.synchronize();
    return result;
  }
  struct Times {
    double all = 0, own = 0;  // seconds of a piece with its meeting, of the piece
  };
  /// Means over `count`; without pieces: of meetings alone.
  Times run(int count, bool pieces) {
    Times sum;
    meet();
    const double start = PhaseClock::now();
    for (int at = 0; at < count; ++at) {
      if (pieces) sum.own += piece();
      meet();
    }
    sum.all = PhaseClock::now() - start;
    return {sum.all / count, sum.own / count};
  }

 private:
  void meet() {
    group_.all_reduce(number_, ReduceOp::max).wait(machine_.queue);
    machine_.queue.synchronize();
  }
  /// What it is meant to take: a slowed rank sleeps when it meets the others.
  double piece() {
    const bool slowed = slowdown_ > 1;
    const double start = slowed ? thread_cpu_seconds() : PhaseClock::now();
    for (int call = 0; call < products_; ++call) product_();
    machine_.queue.synchronize();
    return slowdown_ * ((slowed ? thread_cpu_seconds() : PhaseClock::now()) - start);
  }

  const ProbeMachine& machine_;
  Communicator& group_;
  double slowdown_;
  Tensor number_;
  std::function<void()> product_;
  double once_ = 0;
  int products_ = 1;
};

/// Of pieces of so many seconds, relative, and its standard error.
std::pair<double, double> deviation(Meetings& meetings, int members, double piece, double seconds) {
  meetings.set_piece(piece);
  const double once = meetings.largest(meetings.run(kFewest, true).all);
  const int count = std::clamp(static_cast<int>(seconds / (2 * kBatches * once)), kFewest, kMost);
  std::vector<double> all;
  for (int batch = 0; batch < kBatches; ++batch) {
    const double meeting = meetings.largest(meetings.run(count, false).all);
    const Meetings::Times times = meetings.run(count, true);
    const double own = meetings.largest(times.own), whole = meetings.largest(times.all);
    all.push_back(std::max(0.0, (whole - meeting) / own - 1) / expected_largest(members));
  }
  const double error = median_error_of(all);
  return {median_of(std::move(all)), error};
}

}  // namespace

MeasuredJitter measure_jitter(const ProbeMachine& machine, Communicator& group, double seconds,
                              double slowdown) {
  if (group.size() < 2) return {};
  Meetings meetings(machine, group, slowdown);
  const auto [one, error] = deviation(meetings, group.size(), kJitterPiece, seconds / 2);
  const double many = deviation(meetings, group.size(), kLong * kJitterPiece, seconds / 2).first;
  if (one <= 0) return {};
  const double exponent = many > 0 ? std::log(one / many) / std::log(kLong) : 0.5;
  return {{one, std::clamp(exponent, 0.0, 0.5)}, error};
}

}  // namespace t3d
