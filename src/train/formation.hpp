// Formation: mesh, context, model and update, built from (machine, plan). It can be dropped and
// another one made in the same process; what the run has learned moves between them
// (train/reshape.hpp). A rank without a place in the plan has an empty one.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "layers/transformer.hpp"
#include "train/machine.hpp"
#include "train/step/update.hpp"

namespace t3d {

class Formation {
 public:
  /// Collective over machine.world(). The model has no weights yet, the optimizers no state:
  /// initialise() or adopt() give them. Throws the same config AgreedError on all ranks where their
  /// plans differ.
  Formation(Machine& machine, Plan plan, const OptimizerConfig& optimizer);
  Formation(const Formation&) = delete;
  Formation& operator=(const Formation&) = delete;

  [[nodiscard]] const Plan& plan() const { return plan_; }
  /// This rank has no place: nothing below but plan() may be asked for.
  [[nodiscard]] bool idle() const { return mesh_ == nullptr; }
  [[nodiscard]] const Context& context() const { return *context_; }
  [[nodiscard]] const Mesh& mesh() const { return *mesh_; }
  [[nodiscard]] const Coord& coord() const { return mesh_->coord(); }
  [[nodiscard]] const ReplicaPlan& replica() const { return plan_.replica(coord().d); }
  [[nodiscard]] Transformer& model() const { return *model_; }
  [[nodiscard]] Update& update() const { return *update_; }

  /// Takes a plan that differs in the parts of the batch only (Plan::same_parameters): nothing
  /// moves and nothing is built. Collective over the machine's world, as the constructor.
  void set_batch(Plan plan);

  /// Bytes that a rank sends while a formation is built, or takes other parts of the batch.
  [[nodiscard]] static Ledger predicted(const Plan& plan, int world_rank);

  /// Fresh weights, state 0.
  void initialise(std::uint64_t seed);

 private:
  Communicator& world_;
  Plan plan_;
  std::unique_ptr<Communicator> active_, device_active_;  // where some ranks are idle
  std::unique_ptr<Mesh> mesh_;
  std::unique_ptr<Context> context_;
  std::unique_ptr<Transformer> model_;
  std::unique_ptr<Update> update_;
};

}  // namespace t3d
