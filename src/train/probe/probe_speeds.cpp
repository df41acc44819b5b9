#include "train/probe/probe_speeds.hpp"

#include <algorithm>
#include <optional>

#include "comm/agree.hpp"
#include "comm/placement.hpp"
#include "hetero/speed/probe_links.hpp"

namespace t3d {
namespace {

constexpr double kLinksPart = 0.2;  // of the time

/// Of this rank's part of its device.
index_t free_bytes(const Machine& machine, index_t ranks_here) {
  const index_t free = machine.device().capacity().free;
  return free / (machine.choice().gpu >= 0 ? machine.choice().sharers : ranks_here);
}

/// Everybody's, by way of the text that a file of speeds has: the same bits on all ranks.
std::vector<RankSpeed> gather_ranks(Communicator& world, const RankSpeed& own) {
  Speeds alone;
  alone.ranks = {own};
  std::vector<RankSpeed> ranks;
  for (const std::string& text : all_gather_texts(world, alone.text()))
    ranks.push_back(std::move(parse_speeds(text, "a rank's speeds").ranks.front()));
  return ranks;
}

std::vector<GroupLinks> gather_links(Communicator& world, const GroupLinks& own) {
  constexpr index_t kNumbers = 4;
  const index_t count = kNumbers * index_t{kProbedGroups};
  std::vector<double> part;
  for (const GroupLink& group : own)
    part.insert(part.end(), {group.link.alpha_seconds, group.link.beta_seconds_per_byte,
                             group.measured ? 1.0 : 0.0, group.between ? 1.0 : 0.0});
  std::vector<double> whole(part.size() * static_cast<std::size_t>(world.size()));
  const std::vector<index_t> counts(static_cast<std::size_t>(world.size()), count);
  world
      .all_gather({part.data(), DType::f64, 1, count},
                  {whole.data(), DType::f64, 1, std::ssize(whole)}, counts)
      .wait_host();
  std::vector<GroupLinks> all(static_cast<std::size_t>(world.size()));
  const double* at = whole.data();
  for (GroupLinks& links : all)
    for (GroupLink& group : links) {
      group = {{at[0], at[1]}, at[2] != 0, at[3] != 0};
      at += kNumbers;
    }
  return all;
}

/// Nodes of the ranks with a place, in their order.
std::vector<int> nodes_of_active(const Plan& plan, const std::vector<int>& nodes) {
  std::vector<int> result;
  for (const int rank : plan.active()) result.push_back(nodes[static_cast<std::size_t>(rank)]);
  return result;
}

}  // namespace

Speeds probe_speeds(Machine& machine, const Formation& formation, const ProbeBudget& budget,
                    double dilation) {
  Communicator& world = machine.world();
  const Ledger before = world.ledger();
  const std::vector<int> nodes = node_of_ranks(world);
  const index_t ranks_here =
      std::count(nodes.begin(), nodes.end(), nodes[static_cast<std::size_t>(world.rank())]);
  const bool alone = world.size() == 1;
  ProbeBudget operators = budget;
  if (!alone) operators.seconds *= 1 - kLinksPart;
  // As balancing does: where every rank has a core, whoever else is on it makes the rank slower.
  const bool crowded = crowded_ranks(world)[static_cast<std::size_t>(world.rank())];
  operators.cpu_time = machine.choice().gpu < 0 && crowded;
  ProbeHooks hooks;
  hooks.together = [&world] { world.barrier(); };
  hooks.dilation = dilation;
  const index_t free = free_bytes(machine, ranks_here);
  RankSpeed own;
  std::optional<Error> fault;
  try {
    own = probe_machine(machine, formation.plan(), operators, hooks);
  } catch (const std::exception& error) {
    fault = as_error(error);
  }
  agree(world, fault);
  own.node = host_name();
  own.free_bytes = free;

  GroupLinks links;
  if (!alone && !formation.idle()) {
    const ProbeMachine means{machine.device(), machine.ops(), machine.queue(), {}};
    const LinkBudget budget_of_links{kLinksPart * budget.seconds, budget.message_bytes};
    try {
      links = probe_links(means, formation.mesh(), nodes_of_active(formation.plan(), nodes),
                          budget_of_links, formation.context().control);
    } catch (const std::exception& error) {
      fault = as_error(error);
    }
  }
  agree(world, fault);  // idle ranks, too, end with the others
  Speeds speeds;
  speeds.ranks = gather_ranks(world, own);
  summarise_links(gather_links(world, links), speeds);
  world.ledger() = before;
  return speeds;
}

}  // namespace t3d
