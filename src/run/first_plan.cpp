#include "run/first_plan.hpp"

#include <algorithm>
#include <array>

#include "comm/agree.hpp"
#include "device/host_limits.hpp"
#include "hetero/planner/memory_fit.hpp"
#include "hetero/planner/step_seconds.hpp"
#include "io/posix_file.hpp"
#include "train/probe/probe_speeds.hpp"

namespace t3d {
namespace {

bool states_speeds(const NodeKinds& kinds) {
  return std::any_of(kinds.of_ranks.begin(), kinds.of_ranks.end(),
                     [](const auto& kind) { return kind && kind->speed; });
}

Speeds speeds_of_file(Communicator& world, const std::string& file) {
  std::string text;
  all_or_none(world, [&] {
    if (world.rank() == 0) text = read_speeds_file(file);
  });
  text = broadcast_text(world, text);
  Speeds speeds;
  all_or_none(world, [&] { speeds = speeds_of_text(text, file, world.size()); });
  return speeds;
}

// A second time where the errors of the first hide whether the ranks are equal.
Speeds probed(Machine& machine, const Config& config, const Plan& plan, index_t least_room,
              double dilation) {
  const Formation formation(machine, plan, config.optimizer);
  ProbeBudget budget;
  budget.seconds = config.hetero.probe_seconds;
  if (least_room > 0) budget.message_bytes = std::min(budget.message_bytes, least_room / 2);
  Speeds speeds = probe_speeds(machine, formation, budget, dilation);
  if (speeds.doubtful(step_work(plan, Coord{}), config.balance.tolerance))
    speeds.take_better(probe_speeds(machine, formation, budget, dilation));
  return speeds;
}

Speeds speeds_of(Machine& machine, const Config& config, const NodeKinds& kinds, const Plan& plan,
                 index_t least_room, double dilation) {
  const SpeedSource source = config.hetero.speeds;
  Speeds speeds = source == SpeedSource::file ? speeds_of_file(machine.world(), config.hetero.file)
                  : source == SpeedSource::probe
                      ? probed(machine, config, plan, least_room, dilation)
                      : equal_speeds(machine.world());
  state_speeds(kinds.of_ranks, source != SpeedSource::equal, step_work(plan, Coord{}), speeds);
  return speeds;
}

void set_rooms(const std::vector<index_t>& rooms, Speeds& speeds) {
  for (std::size_t rank = 0; rank < rooms.size(); ++rank)
    speeds.ranks[rank].free_bytes = rooms[rank];
}

/// So many times what is free, within what could be.
std::vector<index_t> scaled(const MemoryRooms& rooms, double factor) {
  std::vector<index_t> result = rooms.free;
  for (std::size_t rank = 0; rank < result.size(); ++rank) {
    result[rank] = static_cast<index_t>(factor * static_cast<double>(result[rank]));
    if (rooms.most[rank] > 0) result[rank] = std::min(result[rank], rooms.most[rank]);
  }
  return result;
}

}  // namespace

bool written_by_hand(const Origins& origins) {
  constexpr std::array keys{"mesh.tokens", "batch.shares"};
  return std::any_of(keys.begin(), keys.end(),
                     [&](const char* key) { return origins.contains(key); });
}

Speeds equal_speeds(Communicator& world) {
  constexpr double kRate = 1e10;
  Speeds speeds;
  speeds.ranks.resize(static_cast<std::size_t>(world.size()));
  const std::vector<std::string> nodes = all_gather_texts(world, host_name());
  for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
    speeds.ranks[rank].node = nodes[rank];
    for (TimeCurve& curve : speeds.ranks[rank].curves) curve = TimeCurve::of_rate(kRate);
  }
  return speeds;
}

PlanRequest request_like(const Config& config, const PlanFacts& facts, const Plan& plan) {
  PlanRequest request;
  request.recipe = plan_recipe(config, facts);
  request.tolerance = config.balance.tolerance;
  request.replicas = std::ssize(plan.replicas);
  for (const ReplicaPlan& replica : plan.replicas) request.cuboids.push_back(replica.cuboid);
  request.place = config.mesh.place;
  if (!config.mesh.outputs.empty() || !config.mesh.contractions.empty()) {
    const ReplicaPlan& written = plan.replicas.front();
    request.cut.hidden = written.hidden;
    request.cut.groups = written.groups;
    request.cut.ffn = written.ffn;
    request.cut.vocab = written.vocab;
    request.feature_widths = false;
  }
  return request;
}

OpenMesh open_mesh(const MeshConfig& mesh) {
  return {mesh.replicas_auto, mesh.cuboid_auto && mesh.cuboids.empty() && mesh.place.empty()};
}

void open_shape(const OpenMesh& open, PlanRequest& request) {
  if (open.cuboid) request.cuboids.clear();
  if (open.replicas) request.replicas.reset();
}

std::string read_speeds_file(const std::string& file) {
  try {
    return read_text_file(file);
  } catch (const Error& error) {
    throw_error(error.code(), "hetero.file: {}", error.what());
  }
}

Speeds speeds_of_text(const std::string& text, const std::string& file, index_t ranks) {
  Speeds speeds = parse_speeds(text, "hetero.file: " + file);
  if (std::ssize(speeds.ranks) != ranks)
    throw_error(ExitCode::config,
                "hetero.file: {} has the speeds of {} ranks, and there are {}; transformer3d probe "
                "measures these",
                file, speeds.ranks.size(), ranks);
  return speeds;
}

FirstPlan planned_for(const Config& config, const PlanFacts& facts, const Plan& even,
                      Speeds speeds) {
  PlanRequest request = request_like(config, facts, even);
  // Equal ranks keep the shape that the input alone gives where it fits; only "auto" replicas ask
  // for another.
  const bool keeps = speeds.equal(step_work(even, Coord{}), config.balance.tolerance) &&
                     memory_shortages(even, speeds).empty();
  OpenMesh open = open_mesh(config.mesh);
  open.cuboid = open.cuboid && (!keeps || open.replicas);
  open_shape(open, request);
  PlanChoice choice = plan_job(request, speeds);
  const std::string expected =
      fmt::format("{:.1f} ms a step predicted, {:.1f} ms at least for any plan",
                  1e3 * choice.predicted.step, 1e3 * choice.bound);
  std::vector<std::string> notes{
      (choice.plan == even
           ? "the even plan stays, as the ranks count as equal or nothing better is known: "
           : "planned by the ranks' speeds: ") +
      expected};
  return {std::move(choice.plan), std::move(speeds), std::move(notes), std::move(choice.why)};
}

FirstPlan planned_within(const MemoryRooms& rooms, const Config& config, const PlanFacts& facts,
                         const Plan& even, Speeds speeds) {
  const auto planned = [&](const std::vector<index_t>& within) {
    set_rooms(within, speeds);
    FirstPlan result = planned_for(config, facts, even, speeds);
    set_rooms(rooms.free, *result.speeds);
    return result;
  };
  for (const double factor : {1.0, 1.3, 1.7, 2.5, 5.0}) {
    try {
      return planned(scaled(rooms, factor));
    } catch (const Error& error) {
      if (error.code() != ExitCode::unavailable) throw;
    }
  }
  return planned(rooms.most);
}

FirstPlan first_plan(Machine& machine, const Config& config, const Origins& origins,
                     const NodeKinds& kinds, const MemoryRooms& rooms, const Plan& even,
                     double dilation) {
  Communicator& world = machine.world();
  if (world.size() == 1 || written_by_hand(origins)) return {even, std::nullopt, {}};
  const bool equal = config.hetero.speeds == SpeedSource::equal && !states_speeds(kinds);
  const PlanFacts facts = plan_facts(machine);
  Speeds speeds = equal_speeds(world);
  FirstPlan result{even, std::nullopt, {}};
  all_or_none(world, [&] {  // the probe, too, has only the memory that there is
    set_rooms(rooms.free, speeds);
    const std::vector<MemoryShortage> lack = memory_shortages(even, speeds);
    if (lack.empty()) return;
    result.plan = planned_within(rooms, config, facts, even, speeds).plan;
    result.notes = {"by the ranks' memory, as " + lack.front().text()};
  });
  if (equal && !config.mesh.replicas_auto) return result;
  const index_t least = *std::min_element(rooms.free.begin(), rooms.free.end());
  speeds = speeds_of(machine, config, kinds, result.plan, least, dilation);
  const auto plan_for = [&] {
    all_or_none(world, [&] { result = planned_within(rooms, config, facts, even, speeds); });
  };
  plan_for();
  // Widths far beyond those that were measured: measured there, once.
  if (config.hetero.speeds == SpeedSource::probe && !trusted(result.plan, speeds)) {
    speeds.join(speeds_of(machine, config, kinds, result.plan, least, dilation));
    plan_for();
    result.notes.emplace_back("measured again, as the first plan by speed was far from even");
  }
  if (result.plan == even) result.notes.resize(1);
  return result;
}

}  // namespace t3d
