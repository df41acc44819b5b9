// Seconds that no plan of a candidate on nodes of one class can beat, as far as the tables are
// right; of several classes an estimate. Internal to hetero/forecast.
#pragma once
#include <array>
#include <vector>

#include "forecast/candidate.hpp"
#include "forecast/cluster/meeting.hpp"
#include "forecast/node_members.hpp"
#include "hetero/cost/exposed_messages.hpp"

namespace t3d {

/// Messages: activations of the linears, weights and gradients, each in as many messages and with
/// as many bytes as step_traffic() counts at least, at the best rate of any level that could serve
/// it, in a group with as many members on the rank's node as is said.
class MessageBounds {
 public:
  MessageBounds(const ModelConfig& model, const JobNodes& nodes, const Cluster& cluster);
  /// Gathers and sums of the linears over j and over k in a step, at least.
  [[nodiscard]] double linear_calls(const JobCandidate& candidate, const PlanRecipe& recipe) const;
  /// What is waited for beside `computing` seconds that can hide messages. `tokens` of the largest
  /// slab in a step; `here`: of an order of axes, or no fewer than any has.
  [[nodiscard]] double seconds(const JobCandidate& candidate, const PlanRecipe& recipe,
                               double tokens, double computing, const OnNode& here) const;

 private:
  [[nodiscard]] double passes(const JobCandidate& candidate, const PlanRecipe& recipe) const;
  /// Seconds of `messages` and `bytes` while so many groups send: at least those of one line.
  struct Line {
    double alpha, beta, beta_group;  // per message; per byte; per byte of each further group
    double nics;                     // that groups share; 0 = they do not
    bool corrected;                  // by samples: one of messages and bytes may be in the other
    [[nodiscard]] double seconds(double messages, double bytes, double groups) const;
  };
  /// Where the members of a group are.
  struct Spread {
    double here, peers;  // on the rank's node; all but the rank
    double groups;       // on the node
  };
  [[nodiscard]] static std::vector<Line> lines_of(const Level& level);
  [[nodiscard]] Spread spread(index_t members, index_t here) const;
  /// `calls` of one verb with `bytes` in all of them.
  [[nodiscard]] double calls_seconds(Verb verb, double calls, double bytes,
                                     const Spread& spread) const;
  [[nodiscard]] static double least(const std::vector<Line>& lines, double messages, double bytes,
                                    double groups);
  /// Of a micro-batch's activations, over j and over k.
  [[nodiscard]] double linears_seconds(const JobCandidate& candidate, const PlanRecipe& recipe,
                                       double tokens, double micros, const OnNode& here) const;
  [[nodiscard]] WeightMessages weights_seconds(const JobCandidate& candidate,
                                               const PlanRecipe& recipe, double micros,
                                               const OnNode& here) const;

  const ModelConfig& model_;
  double levels_, least_matrix_;  // the smallest of a block over their mean
  bool one_class_;
  index_t outer_levels_ = 0;  // of more than one node
  bool on_gpus_ = false;
  index_t ranks_per_node_ = 1;          // of the class with most
  std::vector<Line> inside_, between_;  // of any level inside a node, of any other
};

/// Products and optimizer of the rank with the largest parts, at the best rate of any class, and
/// the messages.
class CandidateBounds {
 public:
  CandidateBounds(const ModelConfig& model, const JobNodes& nodes, const ClusterRates& rates,
                  ComputeType compute);
  /// `here`: of an order of axes, or no fewer than any has (NodeMembers).
  [[nodiscard]] double seconds(const JobCandidate& candidate, const PlanRecipe& recipe,
                               const OnNode& here) const;

 private:
  [[nodiscard]] double unit(OperatorKind kind) const {
    return unit_seconds_[static_cast<std::size_t>(kind)];
  }
  [[nodiscard]] double stream_seconds(const JobCandidate& candidate, const PlanRecipe& recipe,
                                      double tokens) const;

  const ModelConfig& model_;
  bool one_class_;
  std::vector<Jitter> jitters_;                        // of the classes
  double flop_seconds_;                                // at least, of the fastest class
  double all_flops_ = 0;                               // a second, of all ranks at most
  std::array<double, kOperatorKinds> unit_seconds_{};  // the same of a flop or a byte
  MessageBounds messages_;
};

}  // namespace t3d
