#include "run/life_plan.hpp"

#include <utility>

#include "run/first_plan.hpp"
#include "run/replan.hpp"
#include "run/setup.hpp"

namespace t3d {
namespace {

class PlanSearch {
 public:
  PlanSearch(Machine& machine, const Config& config, const Origins& origins, const NodeKinds& kinds,
             Continuation& from)
      : machine_(machine),
        world_(machine.world()),
        config_(config),
        origins_(origins),
        kinds_(kinds),
        from_(from),
        facts_(plan_facts(machine)) {}

  LifePlan run() {
    all_or_none(world_, [&] { found_.plan = from_.make_plan(facts_); });
    const DeviceChoice& choice = machine_.choice();
    found_.room = memory_room(world_, config_, found_.plan, machine_.device(),
                              choice.gpu >= 0 ? choice.sharers : 0);
    found_.basis = plan_basis(machine_, config_);
    const MemoryRooms rooms{gather_rooms(world_, found_.room.bytes),
                            gather_rooms(world_, found_.room.most)};
    const Config input = drop_outdated(rooms);
    found_.speeds = from_.speeds(world_.size());
    if (!from_.keeps_plan()) plan_anew(input, rooms);
    say_changes();
    found_.memory_warning = lacking_memory(found_.plan, found_.basis, rooms.free);
    return std::move(found_);
  }

 private:
  /// The input to plan by, where the checkpoint's plan does not stay.
  Config drop_outdated(const MemoryRooms& rooms) {
    Config input = config_;
    all_or_none(world_, [&] {
      const std::string why = from_.outdated(found_.basis, rooms.free);
      if (why.empty()) return;
      found_.notes.push_back("made anew: " + why);
      input = from_.drop_plan();
      found_.plan = make_plan(input, facts_);
    });
    return input;
  }

  void plan_anew(const Config& input, const MemoryRooms& rooms) {
    if (!config_.mesh.plan.empty() && !from_.info()) {
      all_or_none(world_,
                  [&] { found_.plan = plan_instead("mesh.plan", config_.mesh.plan, found_.plan); });
      found_.notes.emplace_back("as mesh.plan says");
      return;
    }
    const index_t next = from_.info() ? from_.info()->state.step + 1 : 1;
    const double dilation =
        train_options(config_, world_.size()).slowdown.factor(world_.rank(), next);
    FirstPlan first = first_plan(machine_, input, origins_, kinds_, rooms, found_.plan, dilation);
    found_.plan = std::move(first.plan);
    found_.speeds = std::move(first.speeds);
    found_.notes.insert(found_.notes.end(), first.notes.begin(), first.notes.end());
    found_.candidates = std::move(first.candidates);
  }

  void say_changes() {
    all_or_none(world_, [&] {
      const std::vector<std::string> changes = from_.changes(found_.plan, found_.basis);
      found_.notes.insert(found_.notes.begin(), changes.begin(), changes.end());
    });
  }

  Machine& machine_;
  Communicator& world_;
  const Config& config_;
  const Origins& origins_;
  const NodeKinds& kinds_;
  Continuation& from_;
  const PlanFacts facts_;
  LifePlan found_;
};

}  // namespace

LifePlan find_life_plan(Machine& machine, const Config& config, const Origins& origins,
                        const NodeKinds& kinds, Continuation& from) {
  return PlanSearch(machine, config, origins, kinds, from).run();
}

}  // namespace t3d
