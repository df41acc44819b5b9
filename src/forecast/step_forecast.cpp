#include "forecast/step_forecast.hpp"

#include <numeric>

#include "forecast/forecaster.hpp"

namespace t3d {
namespace {

double sum_of(const std::array<double, kOperatorKinds>& seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

/// Gathers of weights and sums of their gradients inside a replica.
bool is_of_weights(Group group) {
  return group == Group::i || group == Group::ij || group == Group::ik;
}

}  // namespace

double ForecastTerms::compute() const { return sum_of(operators); }
double ForecastTerms::products() const {
  std::array<double, kOperatorKinds> seconds = operators;
  for (const OperatorKind kind : {OperatorKind::optimizer, OperatorKind::whole})
    seconds[static_cast<std::size_t>(kind)] = 0;
  return sum_of(seconds);
}

double ForecastTerms::Exposed::of(Group group) const {
  if (is_of_weights(group)) return inside_replica;
  return group == Group::d ? over_replicas : 1;
}

ForecastTerms::Exposed ForecastTerms::exposed_parts(const ForecastFactors& factors) const {
  if (cover.most == 0) return {};
  WeightMessages all;
  for (std::size_t at = 0; at < kGroups; ++at) {
    const double seconds = factors.inside * inside[at] + factors.between * between[at];
    if (is_of_weights(static_cast<Group>(at))) all.inside_replica += seconds;
    if (static_cast<Group>(at) == Group::d) all.over_replicas += seconds;
  }
  const auto [own, over] = exposed_messages(all, factors.compute * products(), cover);
  const auto part = [](double some, double whole) { return whole > 0 ? some / whole : 1; };
  return {part(own, all.inside_replica), part(over, all.over_replicas)};
}

double ForecastTerms::exposed(Group group) const { return exposed_parts({}).of(group); }
double ForecastTerms::messages_inside() const { return messages_of(&ForecastTerms::inside, {}); }
double ForecastTerms::messages_between() const { return messages_of(&ForecastTerms::between, {}); }

double ForecastTerms::messages_of(GroupSeconds ForecastTerms::*which,
                                  const ForecastFactors& factors) const {
  const Exposed exposed = exposed_parts(factors);
  double sum = 0;
  for (std::size_t at = 0; at < kGroups; ++at)
    sum += exposed.of(static_cast<Group>(at)) * (this->*which)[at];
  return sum;
}

double ForecastTerms::sum(const ForecastFactors& factors) const {
  return (factors.compute * (compute() + meeting) + factors.host * host +
          factors.inside * messages_of(&ForecastTerms::inside, factors) +
          factors.between * messages_of(&ForecastTerms::between, factors)) /
         (1 - factors.waiting);
}

ClusterRates::ClusterRates(const Cluster& cluster) : cluster_(cluster) {
  for (const NodeClass& one : cluster.classes)
    operators_.emplace_back(std::make_shared<const OperatorEstimator>(one));
  for (const Level& level : cluster.levels) levels_.emplace_back(level);
}

double ClusterRates::seconds(std::size_t node_class, ComputeType format, const OperatorCall& call) {
  CachedEstimator& own = operators_[node_class];
  if (call.kind != OperatorKind::matmul)
    return own.estimator().seconds(call.kind, format,
                                   std::span(call.shape).first(form_of(call.kind).columns.size()));
  return own.matmul_seconds(
      format, {static_cast<index_t>(call.shape[0]), static_cast<index_t>(call.shape[1]),
               static_cast<index_t>(call.shape[2]), call.shape[3] != 0, call.shape[4] != 0});
}

StepForecast forecast_step(const Plan& plan, const JobNodes& nodes, ClusterRates& rates) {
  return Forecaster(plan, nodes, rates).step();
}

}  // namespace t3d
