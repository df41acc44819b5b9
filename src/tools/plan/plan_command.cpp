// transformer3d plan INPUT --cluster CLUSTER: which nodes to ask for, which shape, how long, how
// much. One process, files and arithmetic.
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <set>

#include "config/config_load.hpp"
#include "config/data_lists.hpp"
#include "config/defaults.hpp"
#include "config/make_plan.hpp"
#include "core/counted.hpp"
#include "data/token_card.hpp"
#include "forecast/cluster/cluster_file.hpp"
#include "forecast/cluster/old_gpus.hpp"
#include "forecast/cluster/run_factors.hpp"
#include "forecast/simulate/job_plan.hpp"
#include "io/output.hpp"
#include "io/posix_file.hpp"
#include "run/setup.hpp"
#include "sched/sbatch.hpp"
#include "tools/calibrate/cluster_update.hpp"
#include "tools/commands.hpp"
#include "tools/output_files.hpp"
#include "tools/plan/elastic_files.hpp"
#include "tools/plan/job_parts.hpp"
#include "tools/plan/node_memory.hpp"
#include "tools/plan/plan_input.hpp"
#include "tools/plan/plan_report.hpp"
#include "tools/plan/plan_sources.hpp"
#include "tools/plan/plan_table.hpp"

namespace t3d {
namespace {

bool runs_on_gpus(const Cluster& cluster) {
  return std::any_of(cluster.classes.begin(), cluster.classes.end(),
                     [](const NodeClass& one) { return one.device != "cpu"; });
}

/// What is written in the input is decided; the rest is free.
SearchRequest request_of(const Config& config, const Origins& origins, const Cluster& cluster,
                         const PlanCommand& command) {
  const bool gpus = runs_on_gpus(cluster);
  SearchRequest request;
  request.recipe = plan_recipe(config, {1, gpus ? TransportKind::nccl : TransportKind::host, gpus});
  if (origins.contains("mesh.replicas") && !config.mesh.replicas_auto)
    request.replicas = config.mesh.replicas;
  if (origins.contains("mesh.cuboid") && !config.mesh.cuboid_auto)
    request.cuboid = config.mesh.cuboid;
  request.kept = 1;
  request.micro_free = !origins.contains("batch.micro");
  request.recompute_free = !origins.contains("batch.recompute");
  request.nodes = command.nodes;
  request.most_nodes = command.most_nodes;
  return request;
}

/// Of a replica, whatever its mesh: as one rank has it.
StateAtRest replica_state(PlanRecipe recipe) {
  recipe.base.ranks = 1;
  recipe.base.place.clear();
  PlanShape shape;
  shape.replicas.emplace_back();
  shape.replicas.back().sequences = recipe.sequences;
  return state_at_rest(build_plan(recipe, shape), Coord{});
}

index_t nodes_of(const NodesSearched& one) {
  index_t nodes = 0;
  for (const JobPart& part : one.parts) nodes += part.nodes;
  return nodes;
}

/// Why nothing fits; on many nodes most is possible.
std::string nothing_fits(std::vector<NodesSearched> searched, const Cluster& cluster) {
  constexpr std::size_t kTold = 8;
  std::stable_sort(
      searched.begin(), searched.end(),
      [](const NodesSearched& a, const NodesSearched& b) { return nodes_of(a) > nodes_of(b); });
  std::string text = "no plan of this job fits on the nodes that were looked at";
  for (std::size_t at = 0; at < std::min(searched.size(), kTold); ++at)
    for (const LeftOut& left : searched[at].left_out)
      text +=
          fmt::format("\n  {}: {} candidates left out, {}; nearest: {}",
                      nodes_text(searched[at].parts, cluster), left.count, left.why, left.nearest);
  if (searched.size() > kTold)
    text += fmt::format("\n  and on {} smaller sets of nodes", searched.size() - kTold);
  return text;
}

/// Before the search: what cannot be written, and what must not be lost.
void check_output(const PlanCommand& command) {
  if (command.output.empty()) return;
  OutputFiles files{"plan",
                    {"input.toml", "plan.toml", "plans.json", "plans.csv", "plans.svg",
                     "job.sbatch", "submit.sh", "job_plan.json"},
                    {"job_plan.json", "submit.sh"}};
  if (command.elastic) files.written = elastic_file_names();
  check_replaced(command.output, files, {command.input, command.cluster});
  if (std::filesystem::absolute(command.output).string().find('\n') != std::string::npos)
    throw_error(ExitCode::usage, "-o: a path with a line break cannot stand in a job script");
}

/// A run goes on from its newest checkpoint.
index_t remaining_steps(const Config& config, const PlanCommand& command,
                        std::vector<std::string>& notes) {
  const index_t all = planned_steps(config);
  const std::optional<CheckpointInfo> from =
      command.from.empty() ? continued_by(config) : newest_checkpoint(command.from);
  if (!from || from->state.step == 0) return all;
  const index_t done = from->state.step;
  if (done >= all)
    throw_error(ExitCode::config, "{} has done all {} steps: nothing is left to plan", from->path,
                all);
  notes.push_back(fmt::format("goes on from {}: {} of {} remain{}", from->path, all - done,
                              counted(all, "step"), all - done == 1 ? "s" : ""));
  return all - done;
}

/// The sets of nodes of which `fact` says something, with what it says.
template <class Fact>
void add_note_of_lives(const std::vector<JobOption>& options, const Cluster& cluster,
                       const char* what, const Fact& fact, std::vector<std::string>& notes) {
  constexpr std::size_t kNamed = 4;
  std::vector<std::string> sets;
  for (const JobOption& option : options)
    if (const std::string said = fact(option); !said.empty())
      sets.push_back(fmt::format("{} ({})", nodes_text(option.found.parts, cluster), said));
  if (sets.empty()) return;
  const std::size_t more = sets.size() - std::min(kNamed, sets.size());
  sets.resize(sets.size() - more);
  notes.push_back(fmt::format("{}: {}{}", what, fmt::join(sets, ", "),
                              more > 0 ? fmt::format(" and {} more", more) : ""));
}

/// That a reader of the figures should know.
std::vector<std::string> notes_of(const std::vector<JobOption>& options, const JobWish& wish,
                                  const Cluster& cluster, std::vector<std::string> notes) {
  std::set<std::string> without_hazard;
  for (const JobOption& option : options)
    for (const JobPart& part : option.found.parts) {
      const NodeClass& own = cluster.classes[part.node_class];
      if (own.preemptible && own.hazard_scale_hours == 0) without_hazard.insert(own.name);
    }
  if (!without_hazard.empty())
    notes.push_back(
        fmt::format("{} may be preempted and has no hazard_scale_hours: no loss is in the hours; "
                    "simulate --history takes it from sacct",
                    fmt::join(without_hazard, ", ")));
  add_note_of_lives(
      options, cluster, "so many lives do not end, as nodes are lost sooner than the job gets on",
      [](const JobOption& one) {
        return one.ended < one.lives ? fmt::format("{:.0f} %", 100 * (1 - one.ended_part())) : "";
      },
      notes);
  const index_t wanted = planned_runs(wish);
  add_note_of_lives(
      options, cluster, "so few lives tell time and cost, as each is very long",
      [&](const JobOption& one) {
        if (one.lives >= wanted) return std::string();
        return fmt::format("{} with {:.0f} losses and {:.0f} checkpoints each", one.lives,
                           one.losses, one.checkpoints);
      },
      notes);
  if (wish.deadline_seconds)
    add_note_of_lives(
        options, cluster,
        fmt::format("lives that are too few to show that {:g} % keep the deadline", 100 * wish.risk)
            .c_str(),
        [&](const JobOption& one) {
          const bool few = static_cast<double>(one.lives) * (1 - wish.risk) * (1 + 1e-9) < 3;
          return few ? fmt::format("{}", one.lives) : std::string();
        },
        notes);
  if (cluster.classes.size() > kMostMixedClasses)
    notes.push_back(fmt::format("only the first {} of {} classes were mixed with each other",
                                kMostMixedClasses, cluster.classes.size()));
  return notes;
}

/// All of them are made before the first is written: what cannot be made leaves those of an earlier
/// plan as they belong together.
void write_files(const PlanReport& report, const Config& config, const Origins& origins,
                 const std::string& folder) {
  const JobOption& chosen = report.options[*report.chosen];
  const std::string job_plan = job_plan_text(chosen.job);
  (void)parse_job_plan(job_plan, "the job plan of this cluster's numbers");  // as simulate will
  std::vector<std::pair<const char*, std::string>> files{
      {"job_plan.json", job_plan},
      {"plan.toml", planned_file(chosen.found.plan)},
      {"input.toml", planned_input(config, origins, chosen.found, chosen.job,
                                   std::filesystem::absolute(folder + "/plan.toml").string())},
      {"plans.json", plan_json(report)},
      {"plans.csv", plan_csv(report)},
      {"plans.svg", plan_plot(report)}};
  SbatchWish wish;
  wish.name = config.run.name;
  wish.program = std::filesystem::read_symlink("/proc/self/exe").string();
  wish.input = std::filesystem::absolute(folder + "/input.toml").string();
  wish.run_dir = config.run.dir;
  wish.checkpoint_dir = config.checkpoint.dir;
  wish.folder = std::filesystem::current_path().string();
  wish.ranks = chosen.found.plan.ranks;
  wish.parts = sbatch_parts(chosen.found.parts, report.cluster);
  ask_memory(chosen.found, report.cluster, config.checkpoint.asynchronous, wish.parts);
  files.emplace_back("job.sbatch", sbatch_text(wish));
  files.emplace_back(
      "submit.sh",
      fmt::format("#!/bin/sh\n# May be called from any folder. Further options of sbatch: sh "
                  "submit.sh -t 24:00:00\n"
                  "{}\nexec sbatch \"$@\" {}\n",
                  enter_text(wish.folder),
                  shell_word(std::filesystem::absolute(folder + "/job.sbatch").string())));
  make_folder(folder);
  for (const auto& [name, text] : files) write_text_durably(folder + "/" + name, text);
}

/// What is in the folder now, and how to go on.
std::string written_text(const std::string& folder, const char* files) {
  return "\n" + folded_line(fmt::format("{}/: {}", folder, files), 2) +
         folded_line("Call submit.sh from any folder: the run starts in " +
                         std::filesystem::current_path().string(),
                     2);
}

void plan_phases(const PlanReport& report, const Config& config, const Origins& origins,
                 const PlanCommand& command, const SearchBatch& search) {
  const ElasticPlan plan =
      elastic_plan(config, command, report.wish, report.options, *report.chosen, search);
  if (!command.json) write_output(basis_text(report.basis));
  write_output(command.json ? elastic_json(plan, report.wish, report.cluster)
                            : elastic_text(plan, report.wish, report.cluster));
  if (command.output.empty()) return;
  write_elastic_files(plan, report.wish, report.cluster, config, origins, command.output);
  if (!command.json)
    write_output(written_text(command.output,
                              "submit.sh, which starts the phase that the run is in; phase-N.toml "
                              "and phase-N.sbatch; elastic.json"));
}

void plan_it(const CommandLine& line, Config config, const Origins& origins) {
  const PlanCommand& command = line.plan;
  check_output(command);
  if (config.model.vocab == 0)
    (void)open_corpus(read_token_cards(train_files(config.data), config.data.format), config,
                      false);
  std::vector<std::string> notes = config.notes;
  const Cluster file = load_cluster(command.cluster, &notes);
  for (const NodeClass& own : file.classes)
    if (own.factors.steps > 0)
      notes.push_back(
          fmt::format("{} as its runs found it: {}", own.name, factors_text(own.factors)));
  const Cluster cluster = corrected_by_runs(file);
  // A schedule of sizes is of the whole run: what is done of it, submit.sh sees.
  const index_t steps =
      command.elastic ? planned_steps(config) : remaining_steps(config, command, notes);
  const SearchRequest request = request_of(config, origins, cluster, command);
  std::vector<std::vector<JobPart>> sets = node_sets(request, cluster);
  // Nodes that no run is possible on are planned with only where there are no others.
  const auto runs = [&](const std::vector<JobPart>& parts) {
    return std::none_of(parts.begin(), parts.end(), [&](const JobPart& part) {
      return is_old_gpu(cluster.classes[part.node_class].device);
    });
  };
  if (std::any_of(sets.begin(), sets.end(), runs)) std::erase_if(sets, std::not_fn(runs));
  if (sets.empty())
    throw_error(ExitCode::config, "no set of nodes of {} has {} nodes{}", command.cluster,
                request.nodes > 0 ? request.nodes : request.most_nodes,
                request.nodes > 0 ? "" : " or fewer");
  if (isatty(STDERR_FILENO) == 1)  // many sets take a while
    fmt::print(stderr, "plan: looks for the best plan on {}\n",
               counted(sets.size(), "set of nodes", "sets of nodes"));
  const auto start = std::chrono::steady_clock::now();
  ClusterRates rates(cluster);
  std::vector<NodesSearched> searched;
  for (const std::vector<JobPart>& parts : sets)
    searched.push_back(search_nodes(request, parts, rates));
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  JobWish wish{config.run.name,
               command.cluster,
               steps,
               config.batch.sequences,
               replica_state(request.recipe),
               command.deadline_seconds,
               command.budget,
               command.objective,
               command.risk,
               config.checkpoint.every_minutes,
               config.checkpoint.every_steps,
               checkpoints_are_free(origins),
               config.checkpoint.asynchronous != AsyncRule::off,
               command.budget_unit};
  const std::vector<JobOption> options = job_options(searched, wish, cluster);
  take_budget_unit(wish, options);
  const PlanReport report{cluster,
                          searched,
                          options,
                          choose_option(options, wish),
                          wish,
                          config.model.context,
                          seconds,
                          notes_of(options, wish, cluster, notes),
                          guessed_parts(cluster, request.recipe.base.compute)};
  if (command.json && !command.elastic) {
    write_output(plan_json(report));
    flush_output();
  }
  if (options.empty()) throw_error(ExitCode::config, "{}", nothing_fits(searched, cluster));
  if (!report.chosen) throw_error(ExitCode::config, "{}", unmet_text(options, wish));
  if (command.elastic) {
    plan_phases(report, config, origins, command, [&](index_t batch) {
      Config other = config;
      other.batch.sequences = batch;
      const SearchRequest wanted = request_of(other, origins, cluster, command);
      std::vector<NodesSearched> found;
      for (const std::vector<JobPart>& parts : sets)
        if (parts.size() == 1) found.push_back(search_nodes(wanted, parts, rates));
      return found;
    });
    return;
  }
  if (!command.json) write_output(plan_text(report, static_cast<std::size_t>(command.top)));
  if (command.output.empty()) return;
  write_files(report, config, origins, command.output);
  if (!command.json)
    write_output(written_text(command.output,
                              "input.toml for the run, plan.toml, submit.sh with job.sbatch, "
                              "job_plan.json for simulate, plans.csv, plans.svg"));
}

}  // namespace

int run_plan(Communicator& world, const CommandLine& command) {
  Origins origins;
  const Config config = load_input(world, command.plan.input, command.overrides, 0, origins);
  all_or_none(world, [&] {
    if (world.rank() != 0) return;
    plan_it(command, config, origins);
    flush_output();
  });
  return 0;
}

}  // namespace t3d
