// transformer3d probe: how fast the ranks are that were started, at the shapes of an input's plan.
#include <algorithm>

#include "config/data_lists.hpp"
#include "io/output.hpp"
#include "io/output_folder.hpp"
#include "io/posix_file.hpp"
#include "record/log/step_record.hpp"
#include "run/node_kinds.hpp"
#include "run/replan.hpp"
#include "run/setup.hpp"
#include "run/tokenizer_check.hpp"
#include "sched/stop_signal.hpp"
#include "tools/commands.hpp"
#include "tools/probe_operators.hpp"
#include "train/probe/probe_speeds.hpp"

namespace t3d {
namespace {

constexpr std::size_t kListed = 64;  // ranks on the screen

/// Work per second at a rank's own place, or at what was measured where it has none.
double rate_of(const RankSpeed& speed, WorkClass kind, const StepWork& own) {
  const TimeCurve& curve = speed.curve(kind);
  if (curve.empty()) return 0;
  const double work = work_of(own, kind);
  if (work > 0) return work / curve.seconds(work);
  return curve.points().back().work / curve.points().back().seconds;
}

std::string rate_cell(double rate) { return rate > 0 ? fmt::format("{:.1f}", rate / 1e9) : "-"; }

std::string rank_line(std::size_t rank, const RankSpeed& speed, const Plan& plan) {
  StepWork own;
  if (const auto place = plan.active_rank(static_cast<int>(rank)))
    own = step_work(plan, plan.mesh().coord_of(*place));
  const auto cell = [&](WorkClass kind) { return rate_cell(rate_of(speed, kind, own)); };
  return fmt::format("{:>4}  {:<16} {:<16} {:>9} {:>9} {:>9} {:>9} {:>10} {:>7.1f} % {:>10.1f}\n",
                     rank, speed.node, speed.device, cell(WorkClass::matmul),
                     cell(WorkClass::attention), cell(WorkClass::whole), cell(WorkClass::streamed),
                     short_bytes(static_cast<double>(speed.free_bytes)), 100 * speed.error,
                     1e3 * speed.seconds(own));
}

std::string link_line(const char* where, const LinkSpeed& link) {
  if (link.alpha_seconds <= 0 && link.beta_seconds_per_byte <= 0) return {};
  return fmt::format("{:<14} {:.1f} us + {:.3f} ns per byte ({:.2f} GB/s)\n", where,
                     1e6 * link.alpha_seconds, 1e9 * link.beta_seconds_per_byte,
                     1e-9 / std::max(link.beta_seconds_per_byte, 1e-15));
}

std::string table_text(const Speeds& speeds, const Plan& plan) {
  std::string text = fmt::format(
      "speeds at the shapes of plan {}, mesh {}\n"
      "{:>4}  {:<16} {:<16} {:>9} {:>9} {:>9} {:>9} {:>10} {:>9} {:>10}\n"
      "{:>4}  {:<16} {:<16} {:>9} {:>9} {:>9} {:>9} {:>10} {:>9} {:>10}\n",
      plan.hash(), plan.mesh().describe(), "rank", "node", "device", "matmul", "attention", "whole",
      "streamed", "free", "error", "step", "", "", "", "GFLOP/s", "GFLOP/s", "GFLOP/s", "GB/s",
      "memory", "of step", "ms");
  for (std::size_t rank = 0; rank < std::min(kListed, speeds.ranks.size()); ++rank)
    text += rank_line(rank, speeds.ranks[rank], plan);
  if (speeds.ranks.size() > kListed)
    text += fmt::format("... and {} more ranks\n", speeds.ranks.size() - kListed);
  text += link_line("inside a node", speeds.inside);
  return text + link_line("between nodes", speeds.between);
}

// Collective. Jobs that are about to end are told by a signal: as in a training, it is no fault.
void stop_if_asked(Communicator& world) {
  std::int32_t asked = stop_signal() != 0 ? 1 : 0;
  world.all_reduce({&asked, DType::i32, 1, 1}, ReduceOp::max).wait_host();
  if (asked != 0)
    throw AgreedError(ExitCode::retry, "asked to stop by a signal before anything was measured");
}

}  // namespace

int run_probe(Communicator& world, const CommandLine& command) {
  catch_stop_signals();
  Origins origins;
  Config config = load_input(world, command.input, command.overrides, world.size(), origins);
  if (config.model.vocab == 0) {
    std::vector<TokenCard> cards = share_token_cards(world, *ranks_of_folder(world),
                                                     train_files(config.data), config.data.format);
    all_or_none(world, [&] { (void)open_corpus(std::move(cards), config, false); });
  }
  all_or_none(world, [&] {  // before anything is measured
    if (world.rank() != 0) return;
    for (const std::string& file : {command.probe_output, command.probe_operators})
      if (!file.empty()) check_output_file(file);
  });
  const NodeKinds kinds = find_node_kinds(world, config);
  print_notes(world, config.notes);
  print_notes(world, kinds.notes);
  Machine machine(world, machine_options(config, kinds));
  Plan plan;
  all_or_none(world, [&] {
    plan = make_plan(config, plan_facts(machine));
    if (!config.mesh.plan.empty()) plan = plan_instead("mesh.plan", config.mesh.plan, plan);
  });
  if (!command.probe_operators.empty()) {
    stop_if_asked(world);
    const std::string text = probe_operators(machine, plan, config, command.probe_operators);
    if (world.rank() == 0) write_output(text);
    return 0;
  }
  const Formation formation(machine, plan, config.optimizer);
  ProbeBudget budget;
  budget.seconds = config.hetero.probe_seconds;
  const TrainOptions options = train_options(config, world.size());
  stop_if_asked(world);
  Speeds speeds =
      probe_speeds(machine, formation, budget, options.slowdown.factor(world.rank(), 1));
  state_speeds(kinds.of_ranks, true, step_work(plan, Coord{}), speeds);
  all_or_none(world, [&] {
    if (world.rank() != 0) return;
    write_output(table_text(speeds, plan));
    if (!command.probe_output.empty()) {
      make_folder(folder_of(command.probe_output));
      write_text_durably(command.probe_output, speeds.text());
      write_output(fmt::format("saved in {}\n", command.probe_output));
    }
    flush_output();
  });
  return 0;
}

}  // namespace t3d
