#include "train/formation.hpp"

#include <array>

#include "comm/cost.hpp"
#include "core/error.hpp"
#include "core/random.hpp"

namespace t3d {
namespace {

/// The ranks with a place, in their order; an idle rank is alone. Null where nobody is idle.
std::unique_ptr<Communicator> active_group(Communicator& world, const Plan& plan) {
  const std::vector<int> active = plan.active();
  if (std::ssize(active) == world.size()) return nullptr;
  const bool idle = !plan.active_rank(world.rank());
  return world.subgroup(idle ? std::vector<int>{world.rank()} : active, "world");
}

// The largest and the smallest hash of all ranks are this rank's own.
void check_same_plan(Communicator& world, const Plan& plan) {
  const std::uint64_t hash = stream_of(plan.text());
  const auto low = static_cast<std::int32_t>(hash), high = static_cast<std::int32_t>(hash >> 32);
  const std::array<std::int32_t, 4> own{low, high, ~low, ~high};
  std::array<std::int32_t, 4> largest = own;
  world.all_reduce({largest.data(), DType::i32, 1, 4}, ReduceOp::max).wait_host();
  if (largest != own) throw AgreedError(ExitCode::internal, "the ranks have different plans");
}

}  // namespace

Formation::Formation(Machine& machine, Plan plan, const OptimizerConfig& optimizer)
    : world_(machine.world()), plan_(std::move(plan)) {
  Communicator& world = machine.world();
  T3D_CHECK(plan_.ranks == world.size(), "a plan for {} ranks, and there are {}", plan_.ranks,
            world.size());
  check_same_plan(world, plan_);
  active_ = active_group(world, plan_);
  // Where some rank has a GPU all make a second group: making one is the work of all members.
  if (machine.has_gpus()) device_active_ = active_group(machine.device_world(), plan_);
  if (!plan_.active_rank(world.rank())) return;
  Communicator& control = active_ ? *active_ : world;
  Communicator& data = device_active_ ? *device_active_
                       : active_      ? *active_
                                      : machine.device_world();
  mesh_ = std::make_unique<Mesh>(data, plan_.mesh());
  context_ = std::make_unique<Context>(Context{machine.device(), machine.ops(), machine.queue(),
                                               *mesh_, control, machine.clock(), plan_.activation(),
                                               plan_.reduce_in_fp32, plan_.keep_inputs,
                                               plan_.keep_weights, plan_.logits_bytes});
  model_ = std::make_unique<Transformer>(*context_, ModelShape(plan_.model, replica()),
                                         plan_.recompute == Recompute::block);
  update_ = make_update(*context_, plan_, optimizer, model_->buckets());
}

void Formation::set_batch(Plan plan) {
  T3D_CHECK(plan_.same_parameters(plan), "the plans differ in more than the batch");
  check_same_plan(world_, plan);
  plan_ = std::move(plan);
  if (!idle()) model_->set_batch(replica());
}

Ledger Formation::predicted(const Plan& plan, int world_rank) {
  Ledger ledger;
  ledger.count(Verb::all_reduce, "world", all_reduce_bytes(4, plan.ranks, world_rank, DType::i32));
  return ledger;
}

void Formation::initialise(std::uint64_t seed) {
  if (idle()) return;
  model_->initialise(seed);
  update_->initialise();
}

}  // namespace t3d
