#include "tools/step_prediction.hpp"

#include <fmt/chrono.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "core/commas.hpp"
#include "core/counted.hpp"
#include "core/error.hpp"
#include "core/node_list.hpp"
#include "core/robust.hpp"
#include "forecast/cluster/cluster_file.hpp"
#include "forecast/cluster/run_factors.hpp"

namespace t3d {
namespace {

constexpr double kOff = 0.1;
constexpr double kUnexplained = 2;  // times as long as its factors say, or as short
constexpr index_t kFirstSteps = 2;  // are not looked at: everything is slow once

std::size_t class_of(const Cluster& cluster, const std::string& node, const std::string& device) {
  std::vector<std::size_t> with_device;
  for (std::size_t at = 0; at < cluster.classes.size(); ++at) {
    const NodeClass& own = cluster.classes[at];
    const std::vector<std::string> names = names_of_node_list(own.node_list);
    if (std::find(names.begin(), names.end(), node) != names.end() && own.device == device)
      return at;
    if (own.device == device) with_device.push_back(at);
  }
  if (with_device.size() == 1) return with_device.front();
  throw_error(ExitCode::config,
              "hetero.cluster: no class has node {} in its node_list, and {} have "
              "its device {}",
              node, with_device.size(), device);
}

/// World ranks are numbered node after node, as JobNodes does.
std::vector<JobPart> parts_of(Cluster& cluster, const std::vector<std::string>& nodes,
                              const std::vector<std::string>& devices) {
  std::vector<JobPart> parts;
  for (std::size_t rank = 0; rank < nodes.size();) {
    std::size_t end = rank;
    while (end < nodes.size() && nodes[end] == nodes[rank]) ++end;
    const std::size_t own = class_of(cluster, nodes[rank], devices[rank]);
    NodeClass& known = cluster.classes[own];
    if (std::ssize(nodes) != static_cast<std::ptrdiff_t>(end - rank) &&
        static_cast<index_t>(end - rank) != known.ranks_per_node)
      throw_error(ExitCode::config,
                  "hetero.cluster: {} on {}, class {} was measured with {} on each node",
                  counted(end - rank, "rank"), nodes[rank], known.name, known.ranks_per_node);
    if (static_cast<index_t>(end - rank) > known.ranks_per_node)
      throw_error(ExitCode::config, "hetero.cluster: {} on {}, class {} was measured with {}",
                  counted(end - rank, "rank"), nodes[rank], known.name, known.ranks_per_node);
    if (parts.empty() || parts.back().node_class != own)
      parts.push_back({own, 1});
    else
      ++parts.back().nodes;
    known.nodes = std::max(known.nodes, parts.back().nodes);
    rank = end;
  }
  return parts;
}

}  // namespace

struct StepPrediction::Known {
  Known(Cluster from, const std::vector<std::string>& nodes,
        const std::vector<std::string>& devices)
      : file(std::move(from)),
        cluster(corrected_by_runs(file)),
        parts(parts_of(cluster, nodes, devices)),
        job(cluster, parts),
        rates(cluster) {}

  Cluster file, cluster;  // as it stands there; with the factors of earlier runs
  std::vector<JobPart> parts;
  JobNodes job;
  ClusterRates rates;
  Plan plan;
  StepForecast forecast;
  FactorFilter filter;
  index_t steps = 0;
  // Of those that are looked at; `ratios`: measured over predicted.
  std::vector<double> predicted, measured, ratios;
};

StepPrediction::StepPrediction(const std::string& file, const std::vector<std::string>& nodes,
                               const std::vector<std::string>& devices)
    : known_(std::make_unique<Known>(load_cluster(file), nodes, devices)) {}
StepPrediction::~StepPrediction() = default;

double StepPrediction::seconds(const Plan& plan) {
  if (known_->plan != plan || known_->forecast.seconds() == 0) {
    known_->forecast = forecast_step(plan, known_->job, known_->rates);
    known_->plan = plan;
  }
  return known_->forecast.seconds();
}

void StepPrediction::measured(double seconds) {
  const double predicted = known_->forecast.seconds();
  if (++known_->steps <= kFirstSteps || !std::isfinite(predicted)) return;
  known_->predicted.push_back(predicted);
  known_->measured.push_back(seconds);
  known_->ratios.push_back(seconds / predicted);
}

// Times are of a step before the one that was measured last.
void StepPrediction::computed(double own, double seconds) {
  if (known_->steps > kFirstSteps + 1 && std::isfinite(known_->forecast.seconds()))
    known_->filter.add(known_->forecast.terms, own, seconds);
}

std::optional<StepFactors> StepPrediction::factors() const {
  if (known_->filter.steps() == 0) return std::nullopt;
  for (const JobPart& part : known_->parts)
    if (part.node_class != known_->parts.front().node_class) return std::nullopt;
  const NodeClass& own = known_->file.classes[known_->parts.front().node_class];
  const ForecastFactors now = known_->filter.factors(), errors = known_->filter.errors();
  // The filter sees tables that are corrected already.
  const auto over_tables = [](const RunFactor& applied, double value, double error) {
    const double before = is_used(applied) ? applied.value : 1;
    return RunFactor{before * value, before * error};
  };
  if (!explained()) return std::nullopt;
  StepFactors result{own.name, own.calibration.time, {}};
  result.factors.compute = over_tables(own.factors.compute, now.compute, errors.compute);
  result.factors.inside = over_tables(own.factors.inside, now.inside, errors.inside);
  result.factors.between = over_tables(own.factors.between, now.between, errors.between);
  result.factors.host = over_tables(own.factors.host, now.host, errors.host);
  result.factors.steps = known_->filter.steps();
  return result;
}

std::string StepPrediction::factors_text(const std::string& run, const std::string& earlier,
                                         const std::string& source) const {
  std::optional<StepFactors> before;
  if (!earlier.empty()) before = parse_step_factors(earlier, source);
  std::optional<StepFactors> own = factors();
  if (!own) return {};
  own->factors.time = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  own->factors.runs = {run};
  if (before && before->factors.runs == own->factors.runs &&
      before->node_class == own->node_class && before->calibrated_time == own->calibrated_time)
    own->factors = merged_factors(before->factors, own->factors);
  return step_factors_text(*own);
}

// The steps of one run say little of each factor by itself: where those that would be used do not
// give back its own steps, they would make other plans wrong, too.
bool StepPrediction::explained() const {
  ForecastFactors now = known_->filter.factors();
  const ForecastFactors errors = known_->filter.errors();
  for (const auto factor : {&ForecastFactors::compute, &ForecastFactors::inside,
                            &ForecastFactors::between, &ForecastFactors::host})
    if (!is_used({now.*factor, errors.*factor})) now.*factor = 1;
  now.waiting = 0;
  const double step = known_->forecast.seconds() * median_of(known_->ratios);
  const double ratio = known_->forecast.terms.sum(now) / step;
  return ratio < kUnexplained && ratio > 1 / kUnexplained;
}

std::vector<std::string> StepPrediction::remarks() const {
  if (known_->ratios.empty()) return {};
  std::vector<std::string> lines{fmt::format(
      "hetero.cluster predicted {} ms a step, measured {} ms (medians of {}): {:+.1f} %",
      readable(1e3 * median_of(known_->predicted), 4),
      readable(1e3 * median_of(known_->measured), 4), counted(known_->ratios.size(), "step"),
      100 * (median_of(known_->ratios) - 1))};
  const double predicted = known_->forecast.seconds();
  const ForecastFactors factors = known_->filter.factors();
  const ForecastTerms& terms = known_->forecast.terms;
  const auto off = [&](const char* what, double factor, double part) {
    if (std::abs(factor - 1) < kOff || part < 0.02 * predicted) return;
    lines.push_back(
        fmt::format("{} took {:.2f} times what {} says", what, factor, "the cluster's file"));
  };
  off("computing", factors.compute, terms.compute());
  off("messages inside nodes", factors.inside, terms.messages_inside());
  off("messages between nodes", factors.between, terms.messages_between());
  if (factors.waiting > kOff)
    lines.push_back(
        fmt::format("for {:.0f} % of a step ranks waited for each other, beside messages",
                    100 * factors.waiting));
  if (known_->filter.steps() > 0 && !explained())
    lines.emplace_back(
        "factors of computing and messages do not explain these steps: none are left for calibrate "
        "--from-run");
  return lines;
}

}  // namespace t3d
