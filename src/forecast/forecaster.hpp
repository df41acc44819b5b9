// A plan's step, forecast for one order of axes after the other: what ranks compute is looked at
// once, what their messages take for each order. Internal to hetero/forecast; others call
// forecast_step().
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "forecast/even_reach.hpp"
#include "forecast/node_members.hpp"
#include "forecast/step_forecast.hpp"
#include "hetero/cost/traffic.hpp"
#include "hetero/planner/slab_key.hpp"

namespace t3d {

class Forecaster {
 public:
  /// All must outlive it. Error(config) where the plan has more ranks than the nodes.
  Forecaster(const Plan& plan, const JobNodes& nodes, ClusterRates& rates);
  /// With the plan's own places.
  [[nodiscard]] StepForecast step();
  /// With the places of an order instead: what step() says of the plan that has them. Replicas of
  /// one cuboid on nodes of one class.
  [[nodiscard]] StepForecast step(const AxisOrder& order);

 private:
  using Seconds = std::array<double, kOperatorKinds>;
  /// What ranks alike compute, and how many operators they start.
  struct RankOperators {
    Seconds operators{};
    double host = 0;
  };
  /// Of those that are alike and follow each other, the first; of those that are alike on nodes
  /// alike, the first and the last.
  struct Replica {
    index_t d, slot;      // the first of its slots
    ForecastTerms terms;  // without messages
    std::optional<TrafficTable> traffic;
  };
  struct GroupSeconds {
    double inside = 0, between = 0;
  };
  /// Where a replica's ranks are, as far as messages may differ by it.
  using Places = std::vector<std::pair<std::size_t, index_t>>;  // by rank: class, place on its node
  /// Of replicas_; equal where there is one.
  struct Alike {
    std::size_t first, last;
  };

  [[nodiscard]] index_t world_rank(index_t slot) const {
    return plan_.place.empty() ? slot : plan_.place[static_cast<std::size_t>(slot)];
  }
  [[nodiscard]] JobNodes::Seat seat(index_t slot) const { return nodes_.seat(world_rank(slot)); }
  const RankOperators& rank_seconds(const Coord& coord, std::size_t node_class,
                                    const SlabKeys::Key& slab);
  [[nodiscard]] double meetings_of(index_t d) const;
  [[nodiscard]] ForecastTerms compute(index_t d, index_t slot);
  void look_at_replicas();
  std::size_t look_at_replica(index_t d, index_t slot, std::vector<Alike>& alike);
  [[nodiscard]] Places places_of(index_t d, index_t slot) const;
  [[nodiscard]] bool on_gpus(const Replica& of) const;
  [[nodiscard]] StepForecast with_messages();
  void add_messages(Replica& of, ForecastTerms& terms);
  [[nodiscard]] TrafficTable traffic_of(Replica& of, const Coord& coord, index_t slot);
  [[nodiscard]] GroupSeconds slowest_reach(const TrafficTable& traffic, Group group, index_t d);
  [[nodiscard]] double level_seconds(const TrafficTable& traffic, Group group, const Reach& reach,
                                     const Reach::At& at) const;

  const Plan& plan_;
  const JobNodes& nodes_;
  ClusterRates& rates_;
  SlabKeys keys_;
  CostMemoPtr memo_ = std::make_shared<CostMemo>();
  std::map<SlabKeys::Key, RankOperators> ranks_;
  std::vector<Replica> replicas_;
  double mean_compute_ = 0;        // of all replicas
  std::vector<index_t> looks_;     // world ranks
  std::optional<EvenReach> even_;  // of the order that is looked at
};

}  // namespace t3d
