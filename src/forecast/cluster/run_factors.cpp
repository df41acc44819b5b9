#include "forecast/cluster/run_factors.hpp"

#include <algorithm>
#include <cmath>

namespace t3d {
namespace {

RunFactor merged(const RunFactor& a, const RunFactor& b) {
  if (a.error <= 0) return b;
  if (b.error <= 0) return a;
  const double weight_a = 1 / (a.error * a.error), weight_b = 1 / (b.error * b.error);
  const double apart = std::abs(a.value - b.value);
  const double error = 1 / std::sqrt(weight_a + weight_b);
  return {(weight_a * a.value + weight_b * b.value) / (weight_a + weight_b),
          apart > a.error + b.error ? std::max(error, apart / 2) : error};
}

double used(const RunFactor& factor) { return is_used(factor) ? factor.value : 1; }

void scale(double factor, Fit& fit, std::vector<Sample>& samples) {
  for (double& term : fit.terms) term *= factor;
  for (double& error : fit.errors) error *= factor;
  for (Sample& sample : samples) {
    sample.seconds *= factor;
    sample.error *= factor;
  }
}

void scale(double factor, Level& level) {
  for (double* const seconds :
       {&level.alpha_seconds, &level.alpha_seconds_error, &level.beta_seconds_per_byte,
        &level.beta_seconds_per_byte_error, &level.beta_together_seconds_per_byte,
        &level.beta_together_seconds_per_byte_error})
    *seconds *= factor;
  for (CollectiveTable& table : level.collectives) scale(factor, table.fit, table.samples);
}

double level_factor(const Level& level, const RunFactors& factors) {
  return used(level.nodes == 1 ? factors.inside : factors.between);
}

}  // namespace

RunFactors merged_factors(const RunFactors& known, const RunFactors& more) {
  RunFactors all = more;
  for (const auto& [name, factor] : kRunFactors) all.*factor = merged(known.*factor, more.*factor);
  all.steps += known.steps;
  all.time = std::max(known.time, more.time);
  all.runs = known.runs;
  for (const std::string& run : more.runs)
    if (std::find(all.runs.begin(), all.runs.end(), run) == all.runs.end()) all.runs.push_back(run);
  return all;
}

Cluster corrected_by_runs(Cluster cluster) {
  for (NodeClass& own : cluster.classes) {
    if (own.factors.steps == 0) continue;
    for (OperatorTable& table : own.operators)
      scale(used(own.factors.compute), table.fit, table.samples);
    own.launch_seconds *= used(own.factors.host);
    own.launch_seconds_error *= used(own.factors.host);
    const std::size_t levels = cluster.levels.size();
    for (std::size_t at = 0; at < levels; ++at) {
      const double factor = level_factor(cluster.levels[at], own.factors);
      if (cluster.levels[at].node_class == own.name) scale(factor, cluster.levels[at]);
      if (factor == 1 || !cluster.levels[at].node_class.empty()) continue;
      // A class's own level wins over one of all classes; one that is there already goes first.
      Level level = cluster.levels[at];
      level.node_class = own.name;
      scale(factor, level);
      cluster.levels.push_back(std::move(level));
    }
    own.factors = {};
  }
  return cluster;
}

}  // namespace t3d
