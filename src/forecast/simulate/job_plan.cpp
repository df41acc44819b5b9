#include "forecast/simulate/job_plan.hpp"

#include <fmt/ranges.h>

#include <set>

#include "core/error.hpp"
#include "core/node_list.hpp"
#include "core/parse_json.hpp"
#include "forecast/simulate/json_faults.hpp"
#include "forecast/simulate/node_trace.hpp"

namespace t3d {
namespace {

constexpr const char* kFormat = "transformer3d job plan";
constexpr index_t kVersion1 = 1;
constexpr std::size_t kMostClasses = 64, kMostSizes = 1024, kMostBuckets = 256;
constexpr std::size_t kMostFaults = 50;  // told
constexpr index_t kMostNodes = 10'000'000;
constexpr double kMostSamples = 1e12, kMostSeconds = 1e9, kMostPrice = 1e12, kMostRate = 1e6;
constexpr double kLeastStep = 1e-6;

Hazard weibull_of(const JsonValue& field) {
  if (!field.expect_object({"shape", "scale_hours", "flat_hours"}, 2)) return {};
  if (!field.has("shape") || !field.has("scale_hours")) return {};
  const double shape = field.member("shape").number(0.05, 20, 1);
  const double flat = field.has("flat_hours") ? field.member("flat_hours").number(0, 1e6) : 0;
  return Hazard::weibull(shape, field.member("scale_hours").number(1e-3, 1e9, 1), flat);
}

Hazard buckets_of(const JsonValue& field) {
  if (!field.has("age_hours")) {
    const JsonValue rate = field.member("per_hour");
    return Hazard::constant(rate.number(0, kMostRate));
  }
  const JsonValue ages = field.member("age_hours");
  if (!field.has("per_hour")) {
    field.fault("'per_hour' is missing");
    return {};
  }
  const JsonValue rates = field.member("per_hour");
  if (!ages.expect_list(kMostBuckets) || !rates.expect_list(kMostBuckets)) return {};
  if (ages.json().size() != rates.json().size()) {
    field.fault("age_hours and per_hour differ in length");
    return {};
  }
  std::vector<AgeBucket> buckets;
  bool sound = true;
  for (std::size_t at = 0; at < ages.json().size(); ++at) {
    const double from = ages.element(at).number(0, 1e9);
    const bool ascends = at == 0 ? from == 0 : from > buckets.back().from_hours;
    if (!ascends && sound) ages.fault("does not ascend from 0");
    sound = sound && ascends;
    buckets.push_back({from, rates.element(at).number(0, kMostRate)});
  }
  return sound ? Hazard::of_buckets(std::move(buckets)) : Hazard();
}

Hazard hazard_of(const JsonValue& field) {
  if (!field.expect_object({"like", "weibull", "age_hours", "per_hour"}, 0)) return {};
  const int forms = int(field.has("like")) + int(field.has("weibull")) +
                    int(field.has("per_hour") || field.has("age_hours"));
  if (forms != 1) {
    field.fault("expected one of like, weibull, and per_hour (with or without age_hours)");
    return {};
  }
  if (field.has("weibull")) return weibull_of(field.member("weibull"));
  if (!field.has("like")) return buckets_of(field);
  const JsonValue like = field.member("like");
  const std::string name = like.text();
  const auto hazard = published_hazard(name);
  if (!hazard && like.json().is_string())
    like.fault(fmt::format("'{}' has no published hazard; K80, P100 and V100 have", name));
  return hazard.value_or(Hazard());
}

SimulatedClass class_of(const JsonValue& field) {
  SimulatedClass kind;
  if (!field.expect_object(
          {"name", "price_per_hour", "nodes", "return_seconds", "hazard", "warned", "node_list"},
          2))
    return kind;
  if (field.has("name")) {
    kind.name = field.member("name").text();
    if (kind.name.empty()) field.fault("the name is empty");
  }
  if (field.has("price_per_hour"))
    kind.price_per_hour = field.member("price_per_hour").number(0, kMostPrice);
  if (field.has("nodes")) kind.nodes = field.member("nodes").count(1, kMostNodes);
  if (field.has("return_seconds"))
    kind.return_seconds = field.member("return_seconds").number(0.001, kMostSeconds, 1);
  if (field.has("warned")) kind.warned = field.member("warned").flag();
  if (field.has("node_list")) {
    kind.node_list = field.member("node_list").text();
    try {
      (void)expand_node_list(kind.node_list);
    } catch (const Error& error) {
      field.member("node_list").fault(error.what());
    }
  }
  if (field.has("hazard")) kind.hazard = hazard_of(field.member("hazard"));
  return kind;
}

/// Nodes by class of one size.
std::vector<index_t> size_nodes(const JsonValue& field,
                                const std::vector<SimulatedClass>& classes) {
  std::vector<index_t> nodes(classes.size());
  if (!field.json().is_object()) {
    field.fault("expected an object {class: nodes}");
    return nodes;
  }
  index_t sum = 0;
  for (const auto& item : field.json().items()) {
    const auto kind = std::find_if(classes.begin(), classes.end(),
                                   [&](const SimulatedClass& c) { return c.name == item.key(); });
    if (kind == classes.end()) {
      field.fault(fmt::format("there is no class '{}'", item.key()));
      continue;
    }
    const JsonValue entry = field.member(item.key().c_str());
    index_t& count = nodes[static_cast<std::size_t>(kind - classes.begin())];
    count = entry.count(0, kMostNodes);
    sum += count;
    if (kind->nodes > 0 && count > kind->nodes)
      entry.fault(fmt::format("{} nodes, but the class has {}", count, kind->nodes));
  }
  if (sum == 0) field.fault("a size without nodes");
  return nodes;
}

JobSize size_from(const JsonValue& field, const std::vector<SimulatedClass>& classes) {
  JobSize size;
  size.nodes.resize(classes.size());
  size.step_seconds = size.samples_per_step = 1;
  if (!field.expect_object({"nodes", "step_seconds", "samples_per_step", "name"}, 3)) return size;
  if (field.has("nodes")) size.nodes = size_nodes(field.member("nodes"), classes);
  if (field.has("step_seconds"))
    size.step_seconds = field.member("step_seconds").number(kLeastStep, kMostSeconds, 1);
  if (field.has("samples_per_step"))
    size.samples_per_step = field.member("samples_per_step").number(1e-6, kMostSamples, 1);
  if (field.has("name")) size.name = field.member("name").text();
  if (size.name.empty()) size.name = fmt::format("{} nodes", fmt::join(size.nodes, " + "));
  return size;
}

/// Members that are numbers, each optional.
struct NumberField {
  const char* name;
  double* value;
  double most;
};
void read_numbers(const JsonValue& field, std::initializer_list<NumberField> numbers) {
  for (const NumberField& number : numbers)
    if (field.has(number.name))
      *number.value = field.member(number.name).number(0, number.most, *number.value);
}

void read_costs(const JsonValue& field, JobCosts& costs) {
  if (!field.expect_object({"checkpoint_stall_seconds", "checkpoint_write_seconds",
                            "restart_seconds", "reshape_seconds", "spare_seconds", "copy_seconds"},
                           0))
    return;
  read_numbers(field, {{"checkpoint_stall_seconds", &costs.checkpoint_stall_seconds, kMostSeconds},
                       {"checkpoint_write_seconds", &costs.checkpoint_write_seconds, kMostSeconds},
                       {"restart_seconds", &costs.restart_seconds, kMostSeconds},
                       {"reshape_seconds", &costs.reshape_seconds, kMostSeconds},
                       {"spare_seconds", &costs.spare_seconds, kMostSeconds},
                       {"copy_seconds", &costs.copy_seconds, kMostSeconds}});
}

void read_site(const JsonValue& field, JobSite& site) {
  if (!field.expect_object(
          {"grace_seconds", "walltime_seconds", "queue_median_seconds", "queue_p90_seconds",
           "first_wait", "job_preemptions_per_hour", "crashes_per_node_hour"},
          0))
    return;
  read_numbers(field, {{"grace_seconds", &site.grace_seconds, kMostSeconds},
                       {"queue_median_seconds", &site.queue_median_seconds, kMostSeconds},
                       {"job_preemptions_per_hour", &site.job_preemptions_per_hour, kMostRate},
                       {"crashes_per_node_hour", &site.crashes_per_node_hour, kMostRate}});
  site.queue_p90_seconds = site.queue_median_seconds;
  if (field.has("queue_p90_seconds"))
    site.queue_p90_seconds =
        field.member("queue_p90_seconds")
            .number(site.queue_median_seconds, kMostSeconds, site.queue_median_seconds);
  if (field.has("walltime_seconds"))
    site.walltime_seconds = field.member("walltime_seconds").number(60, kMostSeconds, 60);
  if (field.has("first_wait")) site.first_wait = field.member("first_wait").flag();
}

template <Worded Choice>
void read_choice(const JsonValue& field, const char* name, Choice& choice) {
  if (!field.has(name)) return;
  const JsonValue member = field.member(name);
  const std::string word = member.text();
  const auto found = choice_of<Choice>(word);
  if (!found && member.json().is_string())
    member.fault(fmt::format("'{}' is none of {}", word, fmt::join(Words<Choice>::all, ", ")));
  choice = found.value_or(choice);
}

void read_policy(const JsonValue& field, SimulationPolicy& policy) {
  if (!field.expect_object({"recovery", "copies", "interval_seconds", "spares", "sizing"}, 0))
    return;
  read_choice(field, "recovery", policy.recovery);
  read_choice(field, "sizing", policy.sizing);
  if (field.has("copies")) policy.copies = int(field.member("copies").count(1, 16));
  if (field.has("spares")) policy.spares = field.member("spares").count(0, kMostNodes);
  if (field.has("interval_seconds")) {
    const JsonValue interval = field.member("interval_seconds");
    policy.interval_seconds = interval.number(0, kMostSeconds);
    if (policy.interval_seconds > 0 && policy.interval_seconds < 1)
      interval.fault("less than 1 s (0: as Young's formula says)");
  }
}

void read_classes(const JsonValue& field, SimulatedJob& job) {
  if (!field.expect_list(kMostClasses)) return;
  std::set<std::string> names;
  for (std::size_t at = 0; at < field.json().size(); ++at) {
    job.classes.push_back(class_of(field.element(at)));
    const std::string& name = job.classes.back().name;
    if (!name.empty() && !names.insert(name).second)
      field.element(at).fault(fmt::format("a second class '{}'", name));
  }
}

void read_sizes(const JsonValue& field, SimulatedJob& job) {
  if (!field.expect_list(kMostSizes)) return;
  for (std::size_t at = 0; at < field.json().size(); ++at)
    job.sizes.push_back(size_from(field.element(at), job.classes));
  std::stable_sort(job.sizes.begin(), job.sizes.end(), [](const JobSize& a, const JobSize& b) {
    return a.samples_per_second() < b.samples_per_second();
  });
}

void read_head(const JsonValue& root, SimulatedJob& job) {
  if (root.has("format") && root.member("format").json() != kFormat)
    root.member("format").fault(fmt::format("expected \"{}\"", kFormat));
  if (root.has("version") && root.member("version").json() != kVersion1)
    root.member("version").fault("this program reads version 1");
  if (root.has("name")) job.name = root.member("name").text();
  if (root.has("source")) job.source = root.member("source").text();
  if (root.has("currency")) job.currency = root.member("currency").text();
  if (root.has("samples")) job.samples = root.member("samples").number(1, kMostSamples, 1);
  read_numbers(root, {{"step_spread", &job.step_spread, 2},
                      {"step_error", &job.step_error, 1},
                      {"step_slower", &job.step_slower, 2}});
}

SimulatedJob job_of(const JsonValue& root) {
  SimulatedJob job;
  if (!root.expect_object(
          {"format", "version", "samples", "classes", "sizes", "name", "source", "currency",
           "step_spread", "step_error", "step_slower", "costs", "site", "policy"},
          5))
    return job;
  read_head(root, job);
  if (root.has("classes")) read_classes(root.member("classes"), job);
  if (root.has("sizes")) read_sizes(root.member("sizes"), job);
  if (root.has("costs")) read_costs(root.member("costs"), job.costs);
  if (root.has("site")) read_site(root.member("site"), job.site);
  if (root.has("policy")) read_policy(root.member("policy"), job.policy);
  return job;
}

[[noreturn]] void refuse(const std::string& source, const std::vector<std::string>& faults) {
  std::string text =
      fmt::format("{}: {} fault{}", source, faults.size(), faults.size() == 1 ? "" : "s");
  for (std::size_t at = 0; at < std::min(faults.size(), kMostFaults); ++at)
    text += "\n  " + faults[at];
  if (faults.size() > kMostFaults) text += "\n  ...";
  throw Error(ExitCode::config, text);
}

}  // namespace

SimulatedJob parse_job_plan(const std::string& text, const std::string& source) {
  JsonValue::Json json;
  try {
    json = parse_json<JsonValue::Json>(text, source);
  } catch (const nlohmann::json::exception& error) {
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string::npos || text[first] != '{')
      throw_error(ExitCode::config,
                  "{} is no job plan, which is JSON; \"transformer3d plan INPUT.toml --cluster "
                  "CLUSTER.toml -o DIR\" writes one (DIR/job_plan.json)",
                  source);
    throw_error(ExitCode::config, "{}: not JSON: {}", source, printable(error.what(), 200));
  }
  std::vector<std::string> faults;
  SimulatedJob job = job_of(JsonValue(json, "", faults));
  if (!faults.empty()) refuse(source, faults);
  return job;
}

namespace {

using PlanJson = JsonValue::Json;

PlanJson json_of(const Hazard& hazard) {
  if (hazard.shape() > 0)
    return {{"weibull",
             {{"shape", hazard.shape()},
              {"scale_hours", hazard.scale_hours()},
              {"flat_hours", hazard.flat_hours()}}}};
  PlanJson ages = PlanJson::array(), rates = PlanJson::array();
  for (const AgeBucket& bucket : hazard.buckets()) {
    ages.push_back(bucket.from_hours);
    rates.push_back(bucket.per_hour);
  }
  return {{"age_hours", ages}, {"per_hour", rates}};
}

PlanJson json_of(const SimulatedClass& kind) {
  PlanJson json{{"name", kind.name}, {"price_per_hour", kind.price_per_hour}};
  if (kind.nodes > 0) json["nodes"] = kind.nodes;
  if (kind.return_seconds < std::numeric_limits<double>::infinity())
    json["return_seconds"] = kind.return_seconds;
  if (!kind.hazard.never()) json["hazard"] = json_of(kind.hazard);
  if (kind.warned) json["warned"] = true;
  if (!kind.node_list.empty()) json["node_list"] = kind.node_list;
  return json;
}

PlanJson json_of(const JobSize& size, const std::vector<SimulatedClass>& classes) {
  PlanJson nodes = PlanJson::object();
  for (std::size_t kind = 0; kind < classes.size(); ++kind)
    if (size.nodes[kind] > 0) nodes[classes[kind].name] = size.nodes[kind];
  return {{"name", size.name},
          {"nodes", nodes},
          {"step_seconds", size.step_seconds},
          {"samples_per_step", size.samples_per_step}};
}

PlanJson json_of(const JobSite& site) {
  PlanJson json{{"grace_seconds", site.grace_seconds},
                {"queue_median_seconds", site.queue_median_seconds},
                {"queue_p90_seconds", site.queue_p90_seconds},
                {"first_wait", site.first_wait},
                {"job_preemptions_per_hour", site.job_preemptions_per_hour},
                {"crashes_per_node_hour", site.crashes_per_node_hour}};
  if (site.walltime_seconds < std::numeric_limits<double>::infinity())
    json["walltime_seconds"] = site.walltime_seconds;
  return json;
}

}  // namespace

std::string job_plan_text(const SimulatedJob& job) {
  PlanJson json{{"format", kFormat},    {"version", kVersion1},     {"name", job.name},
                {"source", job.source}, {"currency", job.currency}, {"samples", job.samples}};
  json["classes"] = PlanJson::array();
  for (const SimulatedClass& kind : job.classes) json["classes"].push_back(json_of(kind));
  json["sizes"] = PlanJson::array();
  for (const JobSize& size : job.sizes) json["sizes"].push_back(json_of(size, job.classes));
  json["step_spread"] = job.step_spread;
  json["step_error"] = job.step_error;
  json["step_slower"] = job.step_slower;
  json["costs"] = {{"checkpoint_stall_seconds", job.costs.checkpoint_stall_seconds},
                   {"checkpoint_write_seconds", job.costs.checkpoint_write_seconds},
                   {"restart_seconds", job.costs.restart_seconds},
                   {"reshape_seconds", job.costs.reshape_seconds},
                   {"spare_seconds", job.costs.spare_seconds},
                   {"copy_seconds", job.costs.copy_seconds}};
  json["site"] = json_of(job.site);
  json["policy"] = {{"recovery", word_of(job.policy.recovery)},
                    {"copies", job.policy.copies},
                    {"interval_seconds", job.policy.interval_seconds},
                    {"spares", job.policy.spares},
                    {"sizing", word_of(job.policy.sizing)}};
  return json.dump(2, ' ', false, PlanJson::error_handler_t::replace) + "\n";
}

}  // namespace t3d
