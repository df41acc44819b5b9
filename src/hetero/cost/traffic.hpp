// TrafficTable: the bytes that a rank sends, by verb and group, as pure functions of (plan,
// coordinate). The formula side of the ledger: what the program counts at its calls must be equal.
// All algorithms are bandwidth-optimal pairwise ones (comm/cost.hpp). Microseconds for one
// coordinate, so that a search can ask for many; Adasum, mean and sum over different cuboids need
// the boxes of all ranks and take longer.
#pragma once
#include <array>
#include <limits>

#include "core/ledger.hpp"
#include "core/plan.hpp"
#include "core/run_event.hpp"
#include "hetero/cost/cost_memo.hpp"

namespace t3d {

/// Calls of one verb in one group: how often, and what this rank sends in all of them. Few bytes
/// and many are counted apart: they cost differently, and an average of both is like neither.
struct TrafficCalls {
  index_t calls = 0, bytes = 0;
  friend bool operator==(const TrafficCalls&, const TrafficCalls&) = default;
};
inline constexpr index_t kSmallCall = 32768;  // bytes

class TrafficTable {
 public:
  /// `times` calls, in each of which the rank sends so many bytes. One without bytes is none.
  void add(Verb verb, Group group, index_t bytes, index_t times = 1) {
    if (bytes == 0 || times == 0) return;
    TrafficCalls& calls = at(verb, group)[bytes > kSmallCall ? 1 : 0];
    calls.calls += times;
    calls.bytes += times * bytes;
  }
  void add(const TrafficTable& other, index_t times);
  [[nodiscard]] index_t bytes(Verb verb, Group group) const {
    const auto& [small, large] = calls(verb, group);
    return small.bytes + large.bytes;
  }
  /// Those of at most kSmallCall bytes, and the others.
  [[nodiscard]] const std::array<TrafficCalls, 2>& calls(Verb verb, Group group) const {
    return calls_[static_cast<std::size_t>(verb)][static_cast<std::size_t>(group)];
  }
  [[nodiscard]] index_t total() const;
  /// Of all verbs.
  [[nodiscard]] index_t on(Group group) const;
  [[nodiscard]] Ledger ledger() const;
  friend bool operator==(const TrafficTable&, const TrafficTable&) = default;

 private:
  static constexpr std::size_t kGroups = static_cast<std::size_t>(Group::count_);
  [[nodiscard]] std::array<TrafficCalls, 2>& at(Verb verb, Group group) {
    return calls_[static_cast<std::size_t>(verb)][static_cast<std::size_t>(group)];
  }
  std::array<std::array<std::array<TrafficCalls, 2>, kGroups>, kVerbs> calls_{};
};

/// One training step, report included, in which the ranks' times are gathered.
[[nodiscard]] TrafficTable step_traffic(const Plan& plan, const Coord& coord,
                                        const CostMemoPtr& memo = nullptr);
/// An evaluation of `sequences` samples in passes of up to `micro`, dealt evenly to the replicas;
/// broken off after so many rounds of passes.
inline constexpr index_t kAllRounds = std::numeric_limits<index_t>::max();
[[nodiscard]] TrafficTable evaluation_traffic(const Plan& plan, const Coord& coord,
                                              index_t sequences, index_t micro,
                                              index_t rounds = kAllRounds);
/// One agreement of all ranks whether to go on with an evaluation.
[[nodiscard]] TrafficTable interruption_traffic(const Plan& plan, int world_rank);
/// What a rank without a place sends in a step, or in an evaluation: its part of the sums that all
/// ranks of the job learn.
[[nodiscard]] index_t summary_for_idle_ranks(const Plan& plan);
[[nodiscard]] TrafficTable idle_traffic(const Plan& plan, int world_rank);
/// Of a step, what gathering the times sends: steps without it send so much less.
[[nodiscard]] TrafficTable times_traffic(const Plan& plan);
[[nodiscard]] TrafficTable idle_evaluation_traffic(const Plan& plan, int world_rank);

/// Numbers (fp64) of a step's report: times that all ranks gather from each, and what they sum.
inline constexpr index_t kReportNumbers = 7, kReportSums = 6 + kRunFlags;

}  // namespace t3d
