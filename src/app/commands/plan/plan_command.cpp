// transformer3d plan INPUT --cluster CLUSTER: which nodes to ask for, which shape, how long, how
// much. One process, files and arithmetic.
#include <chrono>
#include <filesystem>

#include "app/cluster/cluster_file.hpp"
#include "app/commands/commands.hpp"
#include "app/commands/plan/plan_report.hpp"
#include "app/commands/setup.hpp"
#include "app/config/config_load.hpp"
#include "app/config/data_lists.hpp"
#include "app/config/defaults.hpp"
#include "app/config/make_plan.hpp"
#include "data/token_card.hpp"
#include "hetero/simulate/job_plan.hpp"
#include "io/output.hpp"
#include "io/posix_file.hpp"
#include "sched/sbatch.hpp"
#include "tensor3d/frozen.hpp"

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

double state_bytes(const Plan& plan) {
  const ParameterCounts counts = parameter_counts(plan.model);
  const double states = plan.optimizer == OptimizerKind::sgd ? 1 : 2;
  return (static_cast<double>(counts.all) + states * static_cast<double>(counts.with_state)) *
         static_cast<double>(size_of(accumulator_of(plan.activation())));
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
  const std::filesystem::path folder = command.output;
  std::error_code none;
  if (std::filesystem::exists(folder, none) && !std::filesystem::is_directory(folder, none))
    throw_error(ExitCode::usage, "-o: {} is no folder", command.output);
  for (const char* name : {"input.toml", "plan.toml"})
    for (const std::string& read : {command.input, command.cluster})
      if (std::filesystem::equivalent(folder / name, read, none))
        throw_error(ExitCode::usage, "-o: {} would be written over; name another folder", read);
}

/// The input with the plan's choices, as a run takes it.
std::string input_text(Config config, const Origins& origins, const FoundPlan& found,
                       const std::string& plan_file) {
  const Plan& plan = found.plan;
  // No keys express the widths of mixed classes.
  if (found.parts.size() > 1) config.mesh.plan = plan_file;
  config.mesh.replicas = std::ssize(plan.replicas);
  config.mesh.replicas_auto = config.mesh.cuboid_auto = false;
  config.mesh.cuboid = plan.replicas.front().cuboid;
  config.batch.micro = plan.largest_micro();
  config.batch.recompute = plan.recompute;
  // Computed of run.dir, which a run may be given another of: two must not share their checkpoints.
  if (!origins.contains("checkpoint.dir")) config.checkpoint.dir.clear();
  return resolved_text(config, origins);
}

/// What sbatch is to be asked for: nodes of one class, or one component for each.
std::string sbatch_line(const std::vector<JobPart>& parts, const Cluster& cluster,
                        const std::string& script) {
  std::string line = "sbatch";
  for (const JobPart& part : parts) {
    const NodeClass& own = cluster.classes[part.node_class];
    if (&part != &parts.front()) line += " :";
    line += fmt::format(" -N {} --ntasks-per-node={}", part.nodes, own.ranks_per_node);
    if (!own.partition.empty()) line += " -p " + shell_word(own.partition);
    if (!own.features.empty()) line += " -C " + shell_word(own.features.front());
    if (own.cores_per_rank > 0) line += fmt::format(" -c {}", own.cores_per_rank);
    if (own.gpus_per_rank > 0) line += fmt::format(" --gpus-per-task={}", own.gpus_per_rank);
  }
  return line + " " + shell_word(script) + "\n";
}

void write_files(const PlanReport& report, const Config& config, const Origins& origins,
                 const std::string& folder) {
  make_folder(folder);
  const JobOption& chosen = report.options[report.chosen];
  const auto write = [&](const char* name, const std::string& text) {
    write_text_durably(folder + "/" + name, text);
  };
  write("job_plan.json", job_plan_text(chosen.job));
  write("plan.toml", chosen.found.plan.text());
  write("input.toml", input_text(config, origins, chosen.found,
                                 std::filesystem::absolute(folder + "/plan.toml").string()));
  write("plans.json", plan_json(report));
  write("plans.csv", plan_csv(report));
  write("plans.svg", plan_plot(report));
  SbatchWish wish;
  wish.name = config.run.name;
  wish.program = std::filesystem::read_symlink("/proc/self/exe").string();
  wish.input = std::filesystem::absolute(folder + "/input.toml").string();
  wish.run_dir = config.run.dir;
  wish.ranks = chosen.found.plan.ranks;
  write("job.sbatch", sbatch_text(wish));
  write("submit.sh",
        "#!/bin/sh\n" + sbatch_line(chosen.found.parts, report.cluster,
                                    std::filesystem::absolute(folder + "/job.sbatch").string()));
}

void plan_it(const CommandLine& line) {
  const PlanCommand& command = line.plan;
  check_output(command);
  Origins origins;
  Config config = load_config(command.input, line.overrides, &origins);
  if (config.model.vocab == 0)
    (void)open_corpus(read_token_cards(train_files(config.data), config.data.format), config,
                      false);
  const Cluster cluster = load_cluster(command.cluster);
  const SearchRequest request = request_of(config, origins, cluster, command);
  const std::vector<std::vector<JobPart>> sets = node_sets(request, cluster);
  if (sets.empty())
    throw_error(ExitCode::config, "no set of nodes of {} has {} nodes{}", command.cluster,
                request.nodes > 0 ? request.nodes : request.most_nodes,
                request.nodes > 0 ? "" : " or fewer");
  const auto start = std::chrono::steady_clock::now();
  ClusterRates rates(cluster);
  std::vector<NodesSearched> searched;
  for (const std::vector<JobPart>& parts : sets)
    searched.push_back(search_nodes(request, parts, rates));
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  JobWish wish{config.run.name,
               command.cluster,
               planned_steps(config),
               config.batch.sequences,
               state_bytes(request.recipe.base),
               command.deadline_seconds,
               command.budget,
               command.objective,
               command.risk};
  const std::vector<JobOption> options = job_options(searched, wish, cluster);
  if (options.empty()) throw_error(ExitCode::config, "{}", nothing_fits(searched, cluster));
  const PlanReport report{
      cluster, searched, options, choose_option(options, wish), wish, config.model.context,
      seconds};
  write_output(command.json ? plan_json(report)
                            : plan_text(report, static_cast<std::size_t>(command.top)));
  if (command.output.empty()) return;
  write_files(report, config, origins, command.output);
  if (!command.json)
    write_output(
        fmt::format("\n{}/: input.toml for the run, plan.toml, submit.sh with job.sbatch, "
                    "job_plan.json for simulate, plans.csv, plans.svg\n",
                    command.output));
}

}  // namespace

int run_plan(Communicator& world, const CommandLine& command) {
  all_or_none(world, [&] {
    if (world.rank() != 0) return;
    plan_it(command);
    flush_output();
  });
  return 0;
}

}  // namespace t3d
