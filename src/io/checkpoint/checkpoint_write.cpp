#include "io/checkpoint/checkpoint_write.hpp"

#include <cstddef>

#include "io/checkpoint/checkpoint_files.hpp"
#include "io/checkpoint/node_file.hpp"
#include "io/checkpoint/save_steps.hpp"
#include "io/lock/lock_owner.hpp"

namespace t3d {
namespace {

void write_pieces(const SavePlan& plan, const std::vector<TensorPart>& tensors, const FillBox& fill,
                  index_t strip_bytes, NodeFile& file) {
  std::vector<MovedBox> boxes;
  for (const PlanPiece& piece : plan.pieces())
    boxes.push_back({plan.box_of(piece), size_of(plan.tensor_of(piece).shape.dtype)});
  std::vector<std::byte> numbers;
  for (const auto& round : rounds_of(boxes, strip_bytes))
    for (const Strip& strip : round) {
      const Holding& holding = plan.piece_of(strip).holdings.front();
      numbers.resize(static_cast<std::size_t>(strip.box.count() * plan.element_bytes(strip)));
      fill(tensors[static_cast<std::size_t>(holding.part)], strip.box, numbers.data());
      file.write(strip, numbers.data());
    }
}

}  // namespace

std::string write_checkpoint(const CheckpointOptions& options, const CheckpointState& state,
                             const std::vector<TensorPart>& tensors, const FillBox& fill,
                             index_t strip_bytes) {
  const SavePlan plan({describe_parts(tensors, true)});
  const Fragment whole = plan.fragment();
  check_cover(whole);
  make_folder(options.dir);
  check_space(options.dir, tensor_bytes(whole));
  const std::string owner = random_token();
  const std::string partial = make_partial_folder(options.dir, state, owner);
  try {
    NodeFile file(partial, node_file_name(0, state, owner.substr(0, 8)), plan, state);
    write_pieces(plan, tensors, fill, strip_bytes, file);
    return publish_checkpoint(options, state, file.finish(options.verify), partial, owner);
  } catch (...) {
    remove_checkpoint(partial, owner);
    throw;
  }
}

}  // namespace t3d
