// The first plan of a run: the input's shape, met by the speeds of the ranks. What the user wrote
// by hand stays as it is; what is open goes where it is fastest.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "config/make_plan.hpp"
#include "hetero/planner/planner.hpp"
#include "run/memory_room.hpp"
#include "run/node_kinds.hpp"
#include "train/machine.hpp"

namespace t3d {

struct FirstPlan {
  Plan plan;
  std::optional<Speeds> speeds;              // from which it was made; none where they do not count
  std::vector<std::string> notes;            // for the log, a line each
  std::vector<std::string> candidates = {};  // what was compared, for those who want to know (-v)
};

/// MemoryRoom::bytes and MemoryRoom::most by rank.
struct MemoryRooms {
  std::vector<index_t> free, most;
};

/// Collective over machine.world(); the same on every rank. `even`: the plan that the input gives
/// where ranks are equal. Within what memory is free; where nothing fits, see planned_within().
/// Where speeds are all equal only memory asks for another plan. `dilation`: of this rank in the
/// first step (ProbeHooks). Throws on all ranks alike:
/// Error(config) for a file of other ranks and where no rank has any speed, Error(unavailable)
/// where the ranks have too little memory, whatever others give back.
[[nodiscard]] FirstPlan first_plan(Machine& machine, const Config& config, const Origins& origins,
                                   const NodeKinds& kinds, const MemoryRooms& rooms,
                                   const Plan& even, double dilation = 1);

/// The same for known speeds; pure. `notes` explain the choice whatever it is.
[[nodiscard]] FirstPlan planned_for(const Config& config, const PlanFacts& facts, const Plan& even,
                                    Speeds speeds);
/// The same within the ranks' memory, whatever speeds.ranks say of it. Memory that others use may
/// become free: where no plan fits into what is free now, into a multiple of that, as little as
/// suffices. Throws Error(unavailable) where none fits into the most that could be free.
[[nodiscard]] FirstPlan planned_within(const MemoryRooms& rooms, const Config& config,
                                       const PlanFacts& facts, const Plan& even, Speeds speeds);
/// Of hetero.file. Errors name the key.
[[nodiscard]] std::string read_speeds_file(const std::string& file);
/// The same, as speeds. Throws Error(config) where it is of other ranks.
[[nodiscard]] Speeds speeds_of_text(const std::string& text, const std::string& file,
                                    index_t ranks);
/// The user wrote how many sequences each rank reads: then nothing is planned.
[[nodiscard]] bool written_by_hand(const Origins& origins);
/// What a plan of the same replicas and cuboids as `plan` is asked for with; places and feature
/// widths that the user wrote stay.
[[nodiscard]] PlanRequest request_like(const Config& config, const PlanFacts& facts,
                                       const Plan& plan);
/// What of the mesh the input leaves to the program: places that are written are those of a cuboid.
struct OpenMesh {
  bool replicas = false, cuboid = false;
};
[[nodiscard]] OpenMesh open_mesh(const MeshConfig& mesh);
/// Takes out of the request what is open.
void open_shape(const OpenMesh& open, PlanRequest& request);
/// Collective. Of ranks of which nothing is known but the node: any rate does, as only ratios
/// count.
[[nodiscard]] Speeds equal_speeds(Communicator& world);

}  // namespace t3d
