// The words of the commands about clusters: plan, simulate, probe, calibrate.
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <map>

#include "app/cli/command_options.hpp"
#include "core/error.hpp"
#include "core/plan.hpp"
#include "core/slowdown.hpp"
#include "core/utf8.hpp"
#include "forecast/cluster/cluster_presets.hpp"

namespace t3d {
namespace {

double seconds_of(const std::string& word) {
  double number = 0;
  const auto [end, reason] = std::from_chars(word.data(), word.data() + word.size(), number);
  const std::string unit(end, word.data() + word.size());
  const std::map<std::string, double> units{
      {"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}, {"d", 86400}};
  if (reason == std::errc{} && unit.empty())
    throw_error(ExitCode::usage, "'{}' has no unit: {}h are hours, {}m minutes, {}s seconds",
                printable(word, 40), word, word, word);
  const auto known = units.find(unit);
  if (reason != std::errc{} || known == units.end() || !(number > 0) || number > 1e9)
    throw_error(ExitCode::usage, "'{}' is no time such as 90m, 36h or 2d", printable(word, 40));
  return number * known->second;
}

/// "1,000" as "1000": commas before three digits.
std::string without_commas(const std::string& text) {
  const auto is_digit = [&](std::size_t at) {
    return at < text.size() && text[at] >= '0' && text[at] <= '9';
  };
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at)
    if (text[at] != ',' || at == 0 || !is_digit(at - 1) || !is_digit(at + 1) || !is_digit(at + 2) ||
        !is_digit(at + 3) || is_digit(at + 4))
      plain += text[at];
  return plain;
}

/// "200", or with the unit of the prices: "200 EUR", "1,500 billing units".
void take_budget(const std::string& given, PlanCommand& command) {
  constexpr double kLeast = 1e-9, kMost = 1e15;
  const std::string word = without_commas(given);
  double most = 0;
  const auto [end, reason] = std::from_chars(word.data(), word.data() + word.size(), most);
  const std::string unit(end, word.data() + word.size());
  const std::size_t first = unit.find_first_not_of(' ');
  if (reason != std::errc{} || !(most >= kLeast && most <= kMost))
    throw_error(ExitCode::usage, "--budget: '{}' is no budget such as 200 or \"200 EUR\"",
                printable(given, 40));
  command.budget = most;
  command.budget_unit =
      first == std::string::npos ? "" : unit.substr(first, unit.find_last_not_of(' ') + 1 - first);
}

PlanCommand::Noise noise_of(const std::string& word) {
  PlanCommand::Noise noise;
  const char* const last = word.data() + word.size();
  const auto [comma, reason] = std::from_chars(word.data(), last, noise.last);
  const bool first = reason == std::errc{} && noise.last > 0 && noise.last < 1e15;
  const auto [end, wrong] = comma == last || *comma != ',' || !first
                                ? std::from_chars_result{comma, std::errc::invalid_argument}
                                : std::from_chars(comma + 1, last, noise.exponent);
  if (wrong != std::errc{} || end != last || !(std::abs(noise.exponent) <= 4))
    throw_error(ExitCode::usage,
                "--noise needs the noise scale at the end of the run, in sequences, and the "
                "exponent of its growth, as in 500,0.5; not '{}'",
                printable(word, 40));
  return noise;
}

void add_elastic(CLI::App& sub, PlanCommand& command) {
  CLI::Option* const elastic = sub.add_flag(
      "--elastic", command.elastic, "plan sizes over the run: more nodes as the batch grows");
  CLI::Option* const from =
      sub.add_option("--noise-from", command.noise_from,
                     "with --elastic: folder of a run that has measured the noise scale")
          ->type_name("RUN")
          ->needs(elastic);
  sub.add_option_function<std::string>(
         "--noise", [&command](const std::string& word) { command.noise = noise_of(word); },
         "the same by hand: noise scale at the end in sequences, and its exponent of growth")
      ->type_name("B,EXPONENT")
      ->needs(elastic)
      ->excludes(from);
  sub.add_option("--most-batch", command.most_batch,
                 "with --elastic: how many sequences the batch may grow to")
      ->check(number_range(index_t{1}, index_t{100000000}))
      ->needs(elastic);
}

template <Worded Choice>
std::vector<std::string> words_of() {
  return {Words<Choice>::all.begin(), Words<Choice>::all.end()};
}

}  // namespace

void add_plan(CLI::App& app, CommandLine& line) {
  PlanCommand& command = line.plan;
  CLI::App* sub = app.add_subcommand(
      "plan", "say which nodes to ask for, in which shape, and how long the run will take");
  sub->add_option("input", command.input, "input file")->required()->type_name("INPUT.toml");
  sub->add_option("--cluster", command.cluster, "cluster file that calibrate wrote")
      ->required()
      ->type_name("CLUSTER.toml");
  sub->add_option_function<std::string>(
         "--deadline",
         [&command](const std::string& word) { command.deadline_seconds = seconds_of(word); },
         "end within this time: 90m, 36h, 2d")
      ->type_name("TIME");
  sub->add_option_function<std::string>(
         "--budget", [&command](const std::string& word) { take_budget(word, command); },
         "cost at most so much, in the currency (or billing units) of the classes' prices, which "
         "may be written behind it: 200, \"200 EUR\"; node-hours where they have no price")
      ->type_name("COST");
  sub->add_option("--objective", command.objective,
                  "what counts among plans that keep to both limits; by default cost with a "
                  "deadline, else time; pareto = the least product of both")
      ->check(CLI::IsMember({"time", "cost", "pareto"}));
  sub->add_option("--risk", command.risk,
                  "part of the simulated lives that must meet the deadline; default 0.95")
      ->check(number_range(0.5, 0.999));
  sub->add_option("--nodes", command.nodes, "exactly so many nodes")
      ->check(number_range(index_t{1}, index_t{1} << 24));
  sub->add_option("--most-nodes", command.most_nodes, "no more than so many nodes")
      ->check(number_range(index_t{1}, index_t{1} << 24));
  sub->add_option("--from", command.from,
                  "plan what remains after this checkpoint, or after the newest one of this run "
                  "folder; by default the one from which a run with this input would continue")
      ->type_name("PATH");
  sub->add_option("--top", command.top, "so many lines in the table; default 10")
      ->check(number_range(index_t{1}, index_t{1000}));
  sub->add_option("-o,--output", command.output,
                  "folder for input, job script, job plan, table and plot")
      ->type_name("DIR");
  sub->add_flag("--json", command.json, "one JSON object");
  add_elastic(*sub, command);
  add_overrides(*sub, line);
}

void add_simulate(CLI::App& app, SimulateCommand& command) {
  CLI::App* sub =
      app.add_subcommand("simulate", "say when a job will be done, and what it will cost");
  sub->add_option("plan", command.plan, "job plan")->required()->type_name("PLAN.json");
  sub->add_option("--trace", command.trace,
                  "replay how nodes came and went: output of sacct --parsable2, or a table "
                  "time_s,change,node; weibull (default) = draw it from the plan's hazards")
      ->type_name("FILE|weibull");
  sub->add_option("--history", command.history,
                  "correct each class's hazard by a trace or an output of sacct")
      ->type_name("FILE");
  sub->add_option("--runs", command.runs, "how many runs are simulated; default 1000")
      ->check(number_range(index_t{1}, index_t{1'000'000}));
  sub->add_option("--seed", command.seed, "of the random numbers; default 1")->check(integer_fault);
  sub->add_option(
         "--policy", command.policies,
         "compare the plan's policy with this one: recovery=, copies=, interval=, spares=, "
         "sizing=, divided by commas; one for each --policy")
      ->allow_extra_args(false)
      ->type_name("TEXT");
  sub->add_option_function<std::string>(
         "--deadline",
         [&command](const std::string& word) { command.deadline_seconds = seconds_of(word); },
         "say how likely it is to end within this time: 90m, 36h, 2d")
      ->type_name("TIME");
  sub->add_option("-o,--output", command.output, "folder for timeline.svg, runs.csv, result.json")
      ->type_name("DIR");
  sub->add_flag("--json", command.json, "one JSON object");
}

void add_probe(CLI::App& app, CommandLine& line) {
  CLI::App* sub = app.add_subcommand("probe", "measure how fast the ranks are that were started");
  sub->add_option("input", line.input, "input file")->required()->type_name("input.toml");
  sub->add_option("-o,--output", line.probe_output, "save the speeds (hetero.file reads them)")
      ->type_name("FILE");
  sub->add_option("--operators", line.probe_operators,
                  "time the operators of the plan one by one instead, for rooflines")
      ->type_name("FILE")
      ->excludes("--output");
  add_overrides(*sub, line);
}

void add_calibrate(CLI::App& app, CalibrateCommand& command) {
  CLI::App* sub = app.add_subcommand(
      "calibrate", "measure what a cluster can do, for plan: with the ranks that were started");
  sub->add_option("-o,--output", command.output,
                  "cluster file; by default cluster.toml, with --from-run that of --add")
      ->type_name("FILE");
  sub->add_option("--add", command.add, "keep what this file knows of other classes")
      ->type_name("FILE");
  sub->add_option("--seconds", command.seconds, "about how long it measures; default 240")
      ->check(number_range(1.0, 3600.0));
  sub->add_option("--class", command.class_name, "name of the nodes' class, if all are alike")
      ->type_name("NAME");
  sub->add_option("--formats", command.formats, "number formats: fp32,bf16 and others")
      ->delimiter(',')
      ->check(CLI::IsMember(words_of<ComputeType>()));
  sub->add_option("--folder", command.folder, "folder whose file system is measured")
      ->type_name("DIR");
  sub->add_option("--device", command.device, "auto, cpu, cuda or mixed")
      ->check(CLI::IsMember(words_of<DeviceRule>()));
  sub->add_flag("--from-slurm", command.from_slurm,
                "measure nothing: take classes, partitions and switches from Slurm");
  sub->add_option(
         "--preset", command.presets,
         fmt::format("measure nothing: take data sheets of {}", fmt::join(cluster_presets(), ", ")))
      ->delimiter(',')
      ->type_name("NAME,...");
  sub->add_option("--threads", command.threads, "threads of a CPU rank; 0 = its part of the cores")
      ->check(number_range(index_t{0}, index_t{4096}));
  sub->add_option(
         "--slowdown", command.slowdown,
         "emulate CPU ranks of one thread that are so many times slower: a factor for each "
         "rank, and each rank counts as a node; for runs with emulate.slowdown")
      ->delimiter(',')
      ->check(number_range(1.0, kMostSlowdown))
      ->type_name("FACTOR,...")
      ->excludes("--from-slurm")
      ->excludes("--preset")
      ->excludes("--device")
      ->excludes("--threads");
  sub->add_option(
         "--from-run", command.from_run,
         "measure nothing: take how long the steps of this run (with hetero.cluster) took, "
         "relative to the file of --add")
      ->needs("--add")
      ->excludes("--from-slurm")
      ->excludes("--preset")
      ->excludes("--slowdown")
      ->type_name("DIR");
  sub->callback([&command] {
    if (command.output.empty())
      command.output = command.from_run.empty() ? "cluster.toml" : command.add;
  });
}

}  // namespace t3d
