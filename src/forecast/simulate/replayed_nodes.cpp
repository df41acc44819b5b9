#include <algorithm>
#include <cmath>
#include <compare>
#include <limits>
#include <map>
#include <set>

#include "core/error.hpp"
#include "forecast/simulate/node_source.hpp"

namespace t3d {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Nodes that came at one moment. A trace names them by it; at the seam from its end to its
/// beginning several moments become its first: these are numbered.
struct NodeKey {
  double trace_born = 0;  // seconds of the trace, in this pass through it
  index_t number = 0;
  friend auto operator<=>(const NodeKey&, const NodeKey&) = default;
};
struct TracedNodes {
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
    for (auto& [key, nodes] : nodes_) {
      nodes.idle += nodes.given;
      nodes.given = 0;
      idle_.insert(key);
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
    for (auto& [key, nodes] : nodes_) nodes.born_seconds += passes * trace_.seconds;
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
    if (change.change > 0)
      come({change.seconds, numbers_++}, pass_begin_ + change.seconds, change.change);
    else
      go(change.born_seconds, -change.change);
  }

  void come(const NodeKey& key, double born_seconds, index_t count) {
    nodes_[key] = {born_seconds, 0, count};
    idle_.insert(key);
  }

  void go(double trace_born, index_t count) {
    constexpr index_t kFirst = std::numeric_limits<index_t>::min();
    auto group = nodes_.lower_bound({trace_born, kFirst});
    while (count > 0 && group != nodes_.end() && group->first.trace_born == trace_born) {
      count -= take_from(group->second, count);
      group = tidied(group);
    }
  }

  /// The job's first. Returns how many there were.
  index_t take_from(TracedNodes& nodes, index_t count) {
    const index_t given = std::min(nodes.given, count);
    if (given > 0 && events_ != nullptr) events_->push_back({0, -given, nodes.born_seconds});
    nodes.given -= given;
    given_ -= given;
    const index_t idle = std::min(nodes.idle, count - given);
    nodes.idle -= idle;
    return given + idle;
  }

  /// Forgets the group if nothing is left of it; the next one.
  std::map<NodeKey, TracedNodes>::iterator tidied(std::map<NodeKey, TracedNodes>::iterator group) {
    if (group->second.idle == 0) idle_.erase(group->first);
    return group->second.given + group->second.idle == 0 ? nodes_.erase(group) : std::next(group);
  }

  /// As many of those that are there as the job wants, the oldest first.
  void give(std::vector<NodeEvent>& events) {
    while (!idle_.empty() && given_ < wanted_[0]) {
      TracedNodes& nodes = nodes_.at(*idle_.begin());
      const index_t more = std::min(nodes.idle, wanted_[0] - given_);
      nodes.idle -= more;
      nodes.given += more;
      given_ += more;
      events.push_back({0, more, nodes.born_seconds});
      if (nodes.idle == 0) idle_.erase(idle_.begin());
    }
  }

  /// From its end to its beginning: the oldest stay, as those of the beginning.
  void begin_pass(std::vector<NodeEvent>& events) {
    pass_begin_ += trace_.seconds;
    events_ = held_ ? &events : nullptr;
    index_t room = at_beginning_;
    std::map<NodeKey, TracedNodes> before;
    before.swap(nodes_);
    idle_.clear();
    for (auto& [key, nodes] : before) {
      const index_t stay = std::min(room, nodes.given + nodes.idle);
      room -= stay;
      (void)take_from(nodes, nodes.given + nodes.idle - stay);
      if (stay == 0) continue;
      const NodeKey first{0, numbers_++};
      nodes_[first] = nodes;
      if (nodes.idle > 0) idle_.insert(first);
    }
    if (room > 0) come({0, numbers_++}, pass_begin_, room);
    events_ = nullptr;
    at_ = 0;
    while (at_ < trace_.changes.size() && trace_.changes[at_].seconds == 0) ++at_;
  }

  const NodeTrace& trace_;
  std::vector<index_t> wanted_;
  double pass_begin_ = 0;  // of this pass through the trace
  std::size_t at_ = 0;     // the next change
  index_t at_beginning_ = 0, given_ = 0;
  bool held_ = false;
  std::map<NodeKey, TracedNodes> nodes_;  // the oldest first
  std::set<NodeKey> idle_;                // of these, with idle nodes
  index_t numbers_ = 0;
  std::vector<NodeEvent>* events_ = nullptr;  // takes what the job loses
};

}  // namespace

std::unique_ptr<NodeSource> replayed_nodes(const NodeTrace& trace, std::vector<index_t> wanted,
                                           double offset_seconds) {
  return std::make_unique<ReplayedNodes>(trace, std::move(wanted), offset_seconds);
}

}  // namespace t3d
