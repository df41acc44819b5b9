// --dry-run [RANKS]: what a job of that many ranks would be, without data, devices or other ranks.
#include <algorithm>
#include <map>

#include "config/data_lists.hpp"
#include "config/model_text.hpp"
#include "core/counted.hpp"
#include "core/folded.hpp"
#include "record/log/step_record.hpp"
#include "run/epochs.hpp"
#include "run/first_plan.hpp"
#include "run/init_weights.hpp"
#include "run/resident.hpp"
#include "run/setup.hpp"
#include "run/tokenizer_check.hpp"
#include "tensor3d/frozen.hpp"
#include "tools/commands.hpp"
#include "tools/rank_cost.hpp"

namespace t3d {
namespace {

void print_folded(const std::string& line) { fmt::print("{}\n", folded(line, 2)); }

std::string bytes_text(index_t bytes) { return short_bytes(static_cast<double>(bytes)); }

void print_memory(const std::vector<RankCost>& costs) {
  const auto smaller = [](const RankCost& a, const RankCost& b) {
    return a.memory.tensors_peak < b.memory.tensors_peak;
  };
  const auto most = std::max_element(costs.begin(), costs.end(), smaller);
  const auto least = std::min_element(costs.begin(), costs.end(), smaller);
  const Coord& c = most->coord;
  print_folded(fmt::format(
      "memory per rank: {} at most (rank at d={} i={} j={} k={}), {} at least; at its peak",
      bytes_text(most->memory.tensors_peak), c.d, c.i, c.j, c.k,
      bytes_text(least->memory.tensors_peak)));
  for (int kind = 0; kind < kMemoryKinds; ++kind)
    fmt::print("  {:<12} {:>12}\n", name_of(static_cast<MemoryKind>(kind)),
               bytes_text(most->memory.by_kind[static_cast<std::size_t>(kind)]));
}

void print_part(const char* what, index_t bytes, const char* remark = "") {
  fmt::print("  {:<12} {:>12}{}\n", what, bytes_text(bytes), remark);
}

// What the system sees of CPU ranks: of the largest, where it writes the checkpoint or keeps a
// snapshot for the process that does; and of all, as ranks of one host.
void print_resident(const std::vector<RankCost>& costs, const Plan& plan, AsyncRule rule) {
  index_t most = 0, messages = 0, parameters = 0, all = 0;
  for (const RankCost& cost : costs) {
    all += cost.ranks * needed_bytes(cost.memory, false);
    most = std::max(most, needed_bytes(cost.memory, false));
    messages = std::max(messages, cost.memory.messages + cost.memory.tables);
    parameters = std::max(parameters, cost.parameters);
  }
  const index_t snapshot = snapshot_bytes(plan, rule, parameters);
  const index_t checkpoint = snapshot > 0 ? snapshot : checkpoint_bytes(plan);
  const index_t ranks = plan.mesh().ranks();
  const ProgramBytes program = program_bytes(ranks);
  const index_t own = program.own + program.segments, host = host_bytes(plan, rule);
  fmt::print("resident per rank: {} at most on CPUs\n",
             bytes_text(most + program.all() + checkpoint));
  print_part("tensors", most - messages);
  print_part("messages", messages);
  print_part("program", own);
  print_part("its files", program.files, ranks > 1 ? "  shared by the ranks of a host" : "");
  print_part("checkpoint", checkpoint, snapshot > 0 ? "  for snapshots" : "  while it is written");
  fmt::print("resident of all ranks: {} on one host, and once the {} of program files\n",
             bytes_text(all + host), bytes_text(program.files));
  print_part("tensors", all, "  and messages");
  print_part("program", ranks * own);
  print_part("checkpoint", host - ranks * own, "  and the kernel's own for these ranks");
}

void print_state(const std::vector<RankCost>& costs, const Plan& plan) {
  const auto most = std::max_element(
      costs.begin(), costs.end(),
      [](const RankCost& a, const RankCost& b) { return a.parameters < b.parameters; });
  const double ideal = static_cast<double>(parameter_counts(plan.model).all) /
                       static_cast<double>(plan.mesh().seen_from(most->coord.d).cuboid_ranks());
  fmt::print("parameters per rank: {} at most, {:.2f} % above total / ranks of its cuboid\n",
             most->parameters, 100 * (static_cast<double>(most->parameters) / ideal - 1));
}

// Bytes sent per step, of one rank and summed over all, by axis.
void print_bytes(const std::vector<RankCost>& costs) {
  std::map<std::string, double> all;
  std::map<std::string, index_t> largest;
  for (const RankCost& cost : costs) {
    std::map<std::string, index_t> own;
    const Ledger sent = cost.sent.ledger();
    for (const auto& [key, entry] : sent.table()) own[key.second] += entry.bytes;
    for (const auto& [axis, bytes] : own) {
      all[axis] += static_cast<double>(bytes) * static_cast<double>(cost.ranks);
      largest[axis] = std::max(largest[axis], bytes);
    }
  }
  fmt::print("bytes sent per step    {:>14} {:>14}\n", "largest rank", "all ranks");
  double total = 0;
  for (const auto& [axis, bytes] : all) {
    if (bytes <= 0) continue;
    fmt::print("  axis {:<14} {:>15} {:>14}\n", axis, bytes_text(largest[axis]),
               short_bytes(bytes));
    total += bytes;
  }
  fmt::print("  total {:>45.0f} bytes\n", total);
}

void print_work(const std::vector<RankCost>& costs) {
  const auto products = [](const RankCost& cost) { return cost.work.matmul + cost.work.attention; };
  const auto most = std::max_element(
      costs.begin(), costs.end(),
      [&](const RankCost& a, const RankCost& b) { return products(a) < products(b); });
  double all = 0, ranks = 0;
  for (const RankCost& cost : costs) {
    all += static_cast<double>(products(cost)) * static_cast<double>(cost.ranks);
    ranks += static_cast<double>(cost.ranks);
  }
  print_folded(
      fmt::format("work per rank and step: {:.3f} TFLOP of products and {:.3f} of attention at "
                  "most, {:.2f} % above the mean; {} streamed",
                  static_cast<double>(most->work.matmul) / 1e12,
                  static_cast<double>(most->work.attention) / 1e12,
                  100 * (static_cast<double>(products(*most)) * ranks / all - 1),
                  bytes_text(most->work.streamed)));
}

// Every width, or how many there are.
std::string widths_text(const Partition& cut) {
  constexpr index_t kListed = 64;
  if (cut.parts() <= kListed) return cut.describe();
  const std::vector<index_t> sizes = cut.sizes();
  const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
  return fmt::format("{} {} = {} parts of {} to {}", cut.name(), cut.length(), cut.parts(), *least,
                     *most);
}

void print_widths(const ReplicaPlan& cut, const Plan& plan) {
  const Partition tokens = cut.tokens_of(plan.largest_micro()).scaled(plan.model.context, "tokens");
  const char* before = "widths";
  for (const Partition* part : {&tokens, &cut.hidden, &cut.groups, &cut.ffn, &cut.vocab}) {
    fmt::print("{}\n", folded(fmt::format("{:<6} {}", before, widths_text(*part)), 9));
    before = "";
  }
  fmt::print("attention over k: by {}\n",
             cut.attention == AttentionCut::heads ? "heads (layout B)" : "sequences (layout A)");
}

void print_mesh(const Plan& plan, index_t steps) {
  const ModelConfig& m = plan.model;
  const MeshShape mesh = plan.mesh();
  fmt::print("mesh {} on {}", mesh.describe(), counted(mesh.ranks(), "rank"));
  if (mesh.ranks() < plan.ranks) fmt::print(", {} idle", plan.ranks - mesh.ranks());
  fmt::print("; plan {}\n", plan.hash());
  print_folded(fmt::format("model {}, {:.3f} GFLOP per token (causal; {:.3f} full square)",
                           parameters_text(m), flops_per_token(m, false) / 1e9,
                           flops_per_token(m, true) / 1e9));
  fmt::print("batch {} of {} tokens; micro-batch {}; steps {}\n",
             counted(plan.sequences(), "sequence"), m.context, plan.largest_micro(), steps);
  for (index_t d = 0; d < (plan.alike() ? 1 : mesh.extent(Axis::d)); ++d) {
    if (!plan.alike()) fmt::print("replica {}\n", d);
    print_widths(plan.replica(d), plan);
  }
}

// Of the files' heads, where they are here: a dry run needs no data.
void print_epochs(Config config, const Plan& plan) {
  std::vector<EpochSource> sources;
  try {
    const auto tokens_of = [&](const std::vector<std::string>& files) {
      return static_cast<double>(
          make_token_source(read_token_cards(files, config.data.format))->size());
    };
    if (config.data.sources.empty()) sources.push_back({"", tokens_of(config.data.train), 1});
    for (std::size_t at = 0; at < config.data.sources.size(); ++at)
      sources.push_back({source_name(config.data, at), tokens_of(config.data.sources[at].files),
                         config.data.sources[at].weight});
  } catch (const Error& error) {
    print_folded(fmt::format("epochs not known: {}", error.what()));
    return;
  }
  const double samples =
      static_cast<double>(planned_steps(config)) * static_cast<double>(plan.sequences());
  const EpochText epochs = epoch_text(sources, samples * static_cast<double>(config.model.context));
  for (const std::string& line : epochs.lines) print_folded(line);
  if (!epochs.warning.empty()) print_folded("warning: " + epochs.warning);
}

// What speeds of a file make of it; others are not known before the ranks are there.
Plan explained_plan(const Config& config, const Origins& origins, const PlanFacts& facts,
                    bool verbose) {
  const Plan even = make_plan(config, facts);
  const std::string& file = config.hetero.file;
  if (config.hetero.speeds != SpeedSource::file || written_by_hand(origins)) return even;
  const FirstPlan planned =
      planned_for(config, facts, even, speeds_of_text(read_speeds_file(file), file, facts.ranks));
  for (const std::string& note : planned.notes) print_folded(note);
  if (verbose)
    for (const std::string& text : planned.candidates) fmt::print("{}\n", text);
  return planned.plan;
}

}  // namespace

int run_dry(Communicator& world, const CommandLine& command) {
  const int ranks = command.dry_run_ranks ? static_cast<int>(*command.dry_run_ranks) : world.size();
  Origins origins;
  Config config = load_input(world, command.input, command.overrides, ranks, origins);
  print_notes(world, config.notes);
  std::optional<InitSource> source;
  if (!config.init.from.empty()) source = find_init_source(world, config.init.from);
  all_or_none(world, [&] {
    if (world.rank() != 0) return;
    if (source) {
      check_same_computation(*source, config.model);
      WeightNeeds needs = needs_of(config.model, config.init.grow_vocab);
      (void)open_weights(*source, needs);
    }
    if (config.model.vocab == 0)
      (void)open_corpus(read_token_cards(train_files(config.data), config.data.format), config,
                        false);
    const bool gpus =
        config.mesh.device == DeviceRule::cuda || config.mesh.device == DeviceRule::mixed;
    const PlanFacts facts{ranks, gpus ? TransportKind::staged : TransportKind::host, gpus};
    const Plan plan = explained_plan(config, origins, facts, command.verbose);
    print_mesh(plan, planned_steps(config));
    print_epochs(config, plan);
    const std::vector<RankCost> costs = rank_costs(plan);
    print_state(costs, plan);
    print_memory(costs);
    print_resident(costs, plan, config.checkpoint.asynchronous);
    print_work(costs);
    print_bytes(costs);
    const std::vector<std::string> differences = check_costs(plan, config.optimizer, costs);
    for (const std::string& line : differences)
      fmt::print("FORMULA AND PROGRAM DIFFER: {}\n", line);
    if (!differences.empty())
      throw_error(ExitCode::internal, "what was computed and what the program counts differ");
  });
  return 0;
}

}  // namespace t3d
