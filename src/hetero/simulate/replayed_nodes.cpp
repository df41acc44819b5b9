#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "hetero/simulate/node_source.hpp"

namespace t3d {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Nodes that came at one moment of the trace.
struct TracedNodes {
  double trace_born = 0;  // seconds of the trace, in this pass through it: names them
  double born_seconds = 0;
  index_t given = 0, idle = 0;  // to the job; beyond what it wants
};

class ReplayedNodes final : public NodeSource {
 public:
  ReplayedNodes(const NodeTrace& trace, std::vector<index_t> wanted, double offset)
      : trace_(trace), wanted_(std::move(wanted)), pass_begin_(-offset) {
    for (const NodeChange& change : trace.changes)
      if (change.seconds == 0) at_beginning_ += change.change;
    // What is there at the beginning of the trace is there then, also without an event.
    for (; at_ < trace.changes.size() && due() < 0; ++at_) apply(trace.changes[at_]);
  }

  void begin(double now, std::vector<NodeEvent>& events) override {
    skip_passes(now);
    std::vector<NodeEvent> unseen;
    while (next_change() <= now) step(unseen);
    held_ = true;
    for (std::size_t kind = 1; kind < wanted_.size(); ++kind)
      if (wanted_[kind] > 0) events.push_back({kind, wanted_[kind], now});
    give(events);
  }

  [[nodiscard]] double next() const override { return held_ ? next_change() : kNever; }
  void take(std::vector<NodeEvent>& events) override { step(events); }

  void release() override {
    held_ = false;
    given_ = 0;
    for (TracedNodes& nodes : nodes_) {
      nodes.idle += nodes.given;
      nodes.given = 0;
    }
  }

 private:
  [[nodiscard]] double due() const { return pass_begin_ + trace_.changes[at_].seconds; }
  [[nodiscard]] double next_change() const {
    return at_ < trace_.changes.size() ? due() : pass_begin_ + trace_.seconds;
  }

  /// A long wait in the queue goes through the trace once at most.
  void skip_passes(double now) {
    const double passes = std::floor((now - pass_begin_) / trace_.seconds) - 1;
    if (passes <= 0) return;
    pass_begin_ += passes * trace_.seconds;
    for (TracedNodes& nodes : nodes_) nodes.born_seconds += passes * trace_.seconds;
  }

  /// All changes of the next moment.
  void step(std::vector<NodeEvent>& events) {
    if (at_ == trace_.changes.size()) {
      begin_pass(events);
      if (held_) give(events);
      return;
    }
    const double now = next_change();
    events_ = held_ ? &events : nullptr;
    for (; at_ < trace_.changes.size() && due() == now; ++at_) apply(trace_.changes[at_]);
    events_ = nullptr;
    if (held_) give(events);
  }

  void apply(const NodeChange& change) {
    if (change.change > 0) {
      const double born = pass_begin_ + change.seconds;
      nodes_.push_back({change.seconds, born, 0, change.change});
      return;
    }
    index_t taken = -change.change;
    for (std::size_t at = 0; at < nodes_.size() && taken > 0; ++at) {
      TracedNodes& nodes = nodes_[at];
      if (nodes.trace_born != change.born_seconds) continue;
      const index_t given = std::min(nodes.given, taken);
      lose(nodes, given);
      taken -= given;
      const index_t idle = std::min(nodes.idle, taken);
      nodes.idle -= idle;
      taken -= idle;
    }
    std::erase_if(nodes_, [](const TracedNodes& nodes) { return nodes.given + nodes.idle == 0; });
  }

  void lose(TracedNodes& nodes, index_t count) {
    if (count == 0) return;
    nodes.given -= count;
    given_ -= count;
    if (events_ != nullptr) events_->push_back({0, -count, nodes.born_seconds});
  }

  /// As many of those that are there as the job wants, the oldest first.
  void give(std::vector<NodeEvent>& events) {
    for (TracedNodes& nodes : nodes_) {
      const index_t more = std::min(nodes.idle, wanted_[0] - given_);
      if (more <= 0) continue;
      nodes.idle -= more;
      nodes.given += more;
      given_ += more;
      events.push_back({0, more, nodes.born_seconds});
    }
  }

  /// From its end to its beginning: the oldest stay, as those of the beginning.
  void begin_pass(std::vector<NodeEvent>& events) {
    pass_begin_ += trace_.seconds;
    events_ = held_ ? &events : nullptr;
    index_t room = at_beginning_;
    for (TracedNodes& nodes : nodes_) {
      nodes.trace_born = 0;
      const index_t stay = std::min(room, nodes.given + nodes.idle);
      room -= stay;
      const index_t too_many = nodes.given + nodes.idle - stay;
      const index_t idle = std::min(nodes.idle, too_many);
      nodes.idle -= idle;
      lose(nodes, too_many - idle);
    }
    std::erase_if(nodes_, [](const TracedNodes& nodes) { return nodes.given + nodes.idle == 0; });
    if (room > 0) nodes_.push_back({0, pass_begin_, 0, room});
    at_ = 0;
    while (at_ < trace_.changes.size() && trace_.changes[at_].seconds == 0) ++at_;
  }

  const NodeTrace& trace_;
  std::vector<index_t> wanted_;
  double pass_begin_ = 0;  // of this pass through the trace
  std::size_t at_ = 0;     // the next change
  index_t at_beginning_ = 0, given_ = 0;
  bool held_ = false;
  std::vector<TracedNodes> nodes_;            // the oldest first
  std::vector<NodeEvent>* events_ = nullptr;  // takes what the job loses
};

}  // namespace

std::unique_ptr<NodeSource> replayed_nodes(const NodeTrace& trace, std::vector<index_t> wanted,
                                           double offset_seconds) {
  return std::make_unique<ReplayedNodes>(trace, std::move(wanted), offset_seconds);
}

}  // namespace t3d
