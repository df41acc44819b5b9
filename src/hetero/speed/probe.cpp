#include "hetero/speed/probe.hpp"

#include <algorithm>
#include <cmath>
#include <exception>

#include "core/phase_clock.hpp"
#include "hetero/speed/probe_pieces.hpp"
#include "hetero/speed/sampler.hpp"

namespace t3d {
namespace {

Coord busiest_place(const Plan& plan, WorkClass kind) {
  const MeshShape mesh = plan.mesh();
  Coord best;
  double most = -1;
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    const Coord coord = mesh.coord_of(rank);
    const double work = work_of(step_work(plan, coord), kind);
    if (work <= most) continue;
    most = work;
    best = coord;
  }
  return best;
}

/// Where a rank's shapes are taken from.
Coord place_of(const Plan& plan, int world_rank, WorkClass kind) {
  // A place without tokens has an optimizer, which is no measure of other streams.
  const WorkClass needed = kind == WorkClass::streamed ? WorkClass::matmul : kind;
  if (const auto number = plan.active_rank(world_rank)) {
    const Coord own = plan.mesh().coord_of(*number);
    if (work_of(step_work(plan, own), needed) > 0) return own;
  }
  return busiest_place(plan, needed);
}

/// Work that counts by its time: a byte takes about as long as four flops.
double weight_of(const StepWork& work, WorkClass kind) {
  return work_of(work, kind) * (kind == WorkClass::streamed ? 4 : 1);
}

/// One class within `seconds`.
class ClassProbe {
 public:
  ClassProbe(const ProbeMachine& machine, const ProbeShape& shape, WorkClass kind, double seconds,
             const ProbeBudget& budget)
      : machine_(machine),
        shape_(shape),
        kind_(kind),
        end_(PhaseClock::now() + seconds),
        rule_{budget.error, budget.shortest_sample, budget.longest_sample, budget.cpu_time} {}

  /// Adds points of whole steps: the plan's own size first, then half of it, then twice. Returns
  /// the first one's error.
  double measure(TimeCurve& curve) {
    const double base = affordable_scale();
    const double error = add_point(base, 0.4 * left(), curve);
    const double enough = 3 * pass_seconds();
    if (0.35 * left() > enough / 2) (void)add_point(base / 2, 0.35 * left(), curve);
    if (0.9 * left() > enough * 2 && has_room()) (void)add_point(base * 2, 0.9 * left(), curve);
    return error;
  }

 private:
  [[nodiscard]] double left() const { return std::max(0.0, end_ - PhaseClock::now()); }
  /// All pieces once, at the base scale.
  [[nodiscard]] double pass_seconds() const {
    double sum = 0;
    for (const double seconds : seconds_) sum += seconds;
    return sum;
  }
  /// Twice the size takes no more than a part of what is free.
  [[nodiscard]] bool has_room() const {
    const index_t free = machine_.device.capacity().free;
    return free == 0 || 8 * bytes_ < free;
  }

  [[nodiscard]] PieceSet make(double scale) const {
    machine_.device.recycle();  // pages of the size before: touching new ones takes longer
    return shape_.pieces(kind_, scale);
  }

  void try_once(double scale) {
    const index_t before = machine_.device.memory().live;
    const PieceSet set = make(scale);
    bytes_ = machine_.device.memory().live - before;
    seconds_.clear();
    for (const Piece& piece : set.pieces) {
      (void)timed(machine_.queue, piece.run, 1);  // touches pages, chooses engines
      seconds_.push_back(timed(machine_.queue, piece.run, 1));
    }
  }

  /// The largest scale up to 1 of which a dozen passes fit into the time. Tried from below: one
  /// pass at scale 1 may take minutes.
  double affordable_scale() {
    constexpr double kFirstFlops = 5e7, kPasses = 12, kGrowth = 16;
    const double fits = left() / kPasses;
    const double pass = weight_of(shape_.work(), kind_) / shape_.passes(kind_);
    double scale = std::min(1.0, kFirstFlops / pass);
    for (;;) {
      try_once(scale);
      const double factor = fits / std::max(pass_seconds(), 1e-9);
      if (scale >= 1 || factor < 2) {
        for (double& seconds : seconds_) seconds *= std::min(1.0, factor);
        return scale * std::min(1.0, factor);
      }
      scale = std::min(1.0, scale * std::min(factor, kGrowth));
    }
  }

  double add_point(double scale, double seconds, TimeCurve& curve) {
    const double end = PhaseClock::now() + seconds;
    const PieceSet set = make(scale);
    seconds = std::max(0.0, end - PhaseClock::now());
    double expected = 0;
    for (std::size_t at = 0; at < set.pieces.size(); ++at)
      expected += set.pieces[at].calls * seconds_[at];
    double step = 0, variance = 0;
    for (std::size_t at = 0; at < set.pieces.size(); ++at) {
      const Piece& piece = set.pieces[at];
      // What takes most of a step gets most of the time, all get some.
      const double share = 0.3 / static_cast<double>(set.pieces.size()) +
                           0.7 * piece.calls * seconds_[at] / std::max(expected, 1e-12);
      const Sampled one = sample(machine_.queue, piece.run, share * seconds, rule_);
      step += piece.calls * one.seconds;
      variance += std::pow(piece.calls * one.seconds * one.error, 2);
    }
    if (step > 0) curve.add(set.work, step);
    return step > 0 ? std::sqrt(variance) / step : 0;
  }

  const ProbeMachine& machine_;
  const ProbeShape& shape_;
  WorkClass kind_;
  double end_;
  SampleRule rule_;
  std::vector<double> seconds_;  // of each piece once, at the base scale
  index_t bytes_ = 0;            // of the buffers at that scale
};

}  // namespace

std::vector<WorkClass> probed_classes(const Plan& plan) {
  std::vector<WorkClass> classes;
  for (std::size_t at = 0; at < kWorkClasses; ++at) classes.push_back(static_cast<WorkClass>(at));
  if (plan.optimizer != OptimizerKind::muon) std::erase(classes, WorkClass::whole);
  const StepWork work = step_work(plan, busiest_place(plan, WorkClass::matmul));
  std::stable_sort(classes.begin(), classes.end(), [&](WorkClass a, WorkClass b) {
    return weight_of(work, a) > weight_of(work, b);
  });
  return classes;
}

RankSpeed probe_rank(const ProbeMachine& machine, const Plan& plan, int world_rank,
                     const ProbeBudget& budget, const ProbeHooks& hooks) {
  const std::vector<WorkClass> classes = probed_classes(plan);
  RankSpeed speed;
  speed.device = machine.device.name();
  std::exception_ptr fault;
  double left = budget.seconds, step = 0, variance = 0;
  for (std::size_t at = 0; at < classes.size(); ++at) {
    const WorkClass kind = classes[at];
    if (hooks.together) hooks.together();
    if (fault) continue;
    // The dearest first, and twice as long as each of the others.
    const double start = PhaseClock::now();
    const double parts = static_cast<double>(classes.size() - at) + (at == 0 ? 1 : 0);
    const double seconds = left * (at == 0 ? 2 : 1) / parts;
    try {
      const ProbeShape shape(machine, plan, place_of(plan, world_rank, kind));
      TimeCurve& curve = speed.curve(kind);
      const double error = ClassProbe(machine, shape, kind, seconds, budget).measure(curve);
      const double all = curve.seconds(work_of(shape.work(), kind));
      step += all;
      variance += std::pow(all * error, 2);
      if (hooks.dilation != 1) curve.scale(hooks.dilation);
    } catch (...) {
      fault = std::current_exception();
    }
    left = std::max(0.0, left - (PhaseClock::now() - start));
  }
  machine.device.trim();  // what was measured with is not the model's memory
  machine.device.restart_peaks();
  if (fault) std::rethrow_exception(fault);
  if (step > 0) speed.error = std::sqrt(variance) / step;
  return speed;
}

}  // namespace t3d
