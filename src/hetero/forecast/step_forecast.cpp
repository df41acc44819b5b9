#include "hetero/forecast/step_forecast.hpp"

#include <numeric>

#include "hetero/forecast/forecaster.hpp"

namespace t3d {
namespace {

double sum_of(const std::array<double, kOperatorKinds>& seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

}  // namespace

double ForecastTerms::compute() const { return sum_of(operators); }
double ForecastTerms::messages_inside() const {
  return std::accumulate(inside.begin(), inside.end(), 0.0);
}
double ForecastTerms::messages_between() const {
  return std::accumulate(between.begin(), between.end(), 0.0);
}
double ForecastTerms::sum(const ForecastFactors& factors) const {
  return (factors.compute * (compute() + meeting) + factors.host * host +
          factors.inside * messages_inside() + factors.between * messages_between()) /
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
