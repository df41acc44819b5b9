#include <algorithm>
#include <queue>

#include "forecast/simulate/node_source.hpp"
#include "forecast/simulate/random_stream.hpp"

namespace t3d {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Nodes of one class and one age; the next of them to be lost.
struct NodeGroup {
  double lost_seconds = kNever;
  std::size_t kind = 0;
  double born_seconds = 0;
  index_t alive = 0;
  double hazard_sum = 0;  // at the last loss
  friend bool operator>(const NodeGroup& a, const NodeGroup& b) {
    return a.lost_seconds > b.lost_seconds;
  }
};

struct NodeReturn {
  double seconds = 0;
  std::size_t kind = 0;
  friend bool operator>(const NodeReturn& a, const NodeReturn& b) { return a.seconds > b.seconds; }
};

template <class T>
using SoonestFirst = std::priority_queue<T, std::vector<T>, std::greater<>>;

class SampledNodes final : public NodeSource {
 public:
  SampledNodes(const SimulatedJob& job, std::vector<index_t> wanted, std::uint64_t seed,
               index_t run)
      : classes_(job.classes),
        wanted_(std::move(wanted)),
        losses_(seed, "losses", run),
        returns_(seed, "returns", run) {}

  void begin(double now, std::vector<NodeEvent>& events) override {
    release();
    for (std::size_t kind = 0; kind < classes_.size(); ++kind) {
      const index_t nodes = wanted_[kind];
      if (nodes == 0) continue;
      events.push_back({kind, nodes, now});
      push({kNever, kind, now, nodes, 0});
    }
  }

  [[nodiscard]] double next() const override {
    const double loss = groups_.empty() ? kNever : groups_.top().lost_seconds;
    return back_.empty() ? loss : std::min(loss, back_.top().seconds);
  }

  void take(std::vector<NodeEvent>& events) override {
    if (!back_.empty() && back_.top().seconds <= next()) {
      const NodeReturn back = back_.top();
      back_.pop();
      events.push_back({back.kind, 1, back.seconds});
      push({kNever, back.kind, back.seconds, 1, 0});
      return;
    }
    const NodeGroup group = groups_.top();
    groups_.pop();
    events.push_back({group.kind, -1, group.born_seconds});
    const double away = classes_[group.kind].return_seconds;
    if (away < kNever) back_.push({group.lost_seconds + away * returns_.exponential(), group.kind});
    if (group.alive > 1)
      push({kNever, group.kind, group.born_seconds, group.alive - 1, group.hazard_sum});
  }

  void release() override {
    groups_ = {};
    back_ = {};
  }

 private:
  /// Draws the next loss: of n alive ones, the sum of the hazard grows by an exponential of mean
  /// 1/n until then.
  void push(NodeGroup group) {
    const Hazard& hazard = classes_[group.kind].hazard;
    if (hazard.never()) return;
    group.hazard_sum += losses_.exponential() / static_cast<double>(group.alive);
    group.lost_seconds = group.born_seconds + 3600 * hazard.age_at(group.hazard_sum);
    if (group.lost_seconds < kNever) groups_.push(group);
  }

  const std::vector<SimulatedClass>& classes_;
  std::vector<index_t> wanted_;
  RandomStream losses_, returns_;
  SoonestFirst<NodeGroup> groups_;
  SoonestFirst<NodeReturn> back_;
};

}  // namespace

std::unique_ptr<NodeSource> sampled_nodes(const SimulatedJob& job, std::vector<index_t> wanted,
                                          std::uint64_t seed, index_t run) {
  return std::make_unique<SampledNodes>(job, std::move(wanted), seed, run);
}

}  // namespace t3d
