// What plan says to scripts: JSON and a table.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "forecast/axis_order.hpp"
#include "io/csv_cell.hpp"
#include "tools/plan/plan_report.hpp"

namespace t3d {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson json_of(const Interval& one) { return {one.low, one.middle, one.high}; }

OrderedJson json_of(const std::vector<JobPart>& parts, const Cluster& cluster) {
  OrderedJson nodes;
  for (const JobPart& part : parts) nodes[cluster.classes[part.node_class].name] = part.nodes;
  return nodes;
}

/// Innermost first; null where a planner has placed every rank by itself.
OrderedJson order_json(const Plan& plan) {
  const std::optional<AxisOrder> order = order_of(plan);
  if (!order) return {};
  OrderedJson axes = OrderedJson::array();
  for (const Axis axis : *order) axes.push_back(name_of(axis));
  return axes;
}

OrderedJson json_of(const JobOption& one, const PlanReport& report) {
  OrderedJson entry;
  entry["nodes"] = json_of(one.found.parts, report.cluster);
  entry["replicas"] = one.found.plan.replicas.size();
  entry["cuboid"] = one.found.plan.replicas.front().cuboid;
  entry["order"] = order_json(one.found.plan);
  if (one.found.usual_seconds) entry["usual_order_step_seconds"] = *one.found.usual_seconds;
  entry["micro"] = one.found.plan.largest_micro();
  entry["recompute"] = one.found.plan.recompute == Recompute::block;
  entry["step_seconds"] = one.found.seconds();
  entry["tokens_per_second"] = report.tokens_per_second(one.found);
  entry["needed_bytes"] = one.found.needed_bytes;
  entry["room_bytes"] = one.found.room_bytes;
  entry["hours"] = json_of(one.hours);
  entry["cost"] = json_of(one.cost);
  entry["currency"] = one.job.currency;
  if (report.wish.deadline_seconds) entry["in_time"] = one.in_time;
  entry["front"] = one.on_front;
  for (const auto& [name, seconds] : terms_of(one.found.forecast.terms))
    entry["terms"][name] = seconds;
  return entry;
}

OrderedJson json_of(const NodesSearched& one, const Cluster& cluster) {
  OrderedJson entry;
  entry["nodes"] = json_of(one.parts, cluster);
  entry["candidates"] = one.candidates;
  entry["priced"] = one.priced;
  entry["complete"] = one.complete;
  entry["fits"] = !one.plans.empty();
  entry["left_out"] = OrderedJson::array();
  for (const LeftOut& left : one.left_out)
    entry["left_out"].push_back(
        {{"why", left.why}, {"count", left.count}, {"nearest", left.nearest}});
  return entry;
}

OrderedJson json_of(const JobWish& wish) {
  OrderedJson json;
  if (wish.deadline_seconds) json["deadline_seconds"] = *wish.deadline_seconds;
  if (wish.budget) json["budget"] = *wish.budget;
  if (!wish.budget_unit.empty()) json["budget_unit"] = wish.budget_unit;
  json["risk"] = wish.risk;
  json["choice"] = choice_text(wish);
  return json;
}

}  // namespace

std::string plan_json(const PlanReport& report) {
  OrderedJson json;
  json["chosen"] = report.chosen ? OrderedJson(*report.chosen) : OrderedJson();
  json["wish"] = json_of(report.wish);
  if (!report.chosen && !report.options.empty()) {
    const NearestOptions nearest = nearest_options(report.options);
    json["unmet"] = {{"why", unmet_text(report.options, report.wish)},
                     {"soonest", nearest.soonest},
                     {"cheapest", nearest.cheapest}};
  }
  json["steps"] = report.wish.steps;
  json["basis"] = report.basis;
  json["notes"] = report.notes;
  json["options"] = OrderedJson::array();
  for (const JobOption& one : report.options) json["options"].push_back(json_of(one, report));
  json["searched"] = OrderedJson::array();
  for (const NodesSearched& one : report.searched)
    json["searched"].push_back(json_of(one, report.cluster));
  return json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

std::string plan_csv(const PlanReport& report) {
  std::string text =
      "nodes,replicas,p,q,r,micro,recompute,step_seconds,tokens_per_second,needed_mib,hours_p5,"
      "hours_p50,hours_p95,cost_p5,cost_p50,cost_p95,front,order\n";
  for (const JobOption& one : report.options) {
    const auto& [p, q, r] = one.found.plan.replicas.front().cuboid;
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
        csv_cell(nodes_text(one.found.parts, report.cluster)), one.found.plan.replicas.size(), p, q,
        r, one.found.plan.largest_micro(), one.found.plan.recompute == Recompute::block ? 1 : 0,
        one.found.seconds(), report.tokens_per_second(one.found),
        static_cast<double>(one.found.needed_bytes) / (1 << 20), one.hours.low, one.hours.middle,
        one.hours.high, one.cost.low, one.cost.middle, one.cost.high, one.on_front ? 1 : 0,
        order_text(order_of(one.found.plan).value_or(AxisOrder{})));
  }
  return text;
}

}  // namespace t3d
