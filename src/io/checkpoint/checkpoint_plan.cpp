#include "io/checkpoint/checkpoint_plan.hpp"

#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "io/packer.hpp"

namespace t3d {
namespace {

struct Collected {
  StoredShape shape;
  std::vector<Holding> holdings;
};

void collect(const std::string& description, int rank, std::map<std::string, Collected>& all) {
  Unpacker from(description);
  while (from.more()) {
    const index_t part = from.number();
    const std::string name = from.text();
    StoredShape shape;
    shape.dtype = static_cast<DType>(from.number());
    shape.rows = from.number();
    shape.cols = from.number();
    shape.vector = from.number() != 0;
    Collected& tensor = all.try_emplace(name, Collected{shape, {}}).first->second;
    if (!(tensor.shape == shape))
      throw_error(ExitCode::io, "ranks disagree on the shape of {}", name);
    const index_t boxes = from.number();
    for (index_t n = 0; n < boxes; ++n) {
      PlacedBox place;
      Box& box = place.box;
      for (index_t* field : {&box.row0, &box.col0, &box.rows, &box.cols, &place.offset})
        *field = from.number();
      tensor.holdings.push_back({rank, part, place});
    }
  }
}

}  // namespace

SavePlan::SavePlan(const std::vector<std::string>& descriptions) {
  std::map<std::string, Collected> all;
  for (std::size_t rank = 0; rank < descriptions.size(); ++rank)
    collect(descriptions[rank], static_cast<int>(rank), all);
  for (auto& [name, tensor] : all) {
    tensors_.push_back({name, tensor.shape, {}});
    add_pieces(tensors_.size() - 1, tensor.holdings);
  }
  std::vector<MovedBox> boxes;
  for (const PlanPiece& piece : pieces_) {
    boxes.push_back({box_of(piece), size_of(tensor_of(piece).shape.dtype)});
  }
  rounds_ = rounds_of(boxes, kRoundBytes);
}

void SavePlan::add_pieces(std::size_t tensor, const std::vector<Holding>& holdings) {
  std::vector<Box> boxes;
  for (const Holding& holding : holdings) boxes.push_back(holding.place.box);
  boxes = merge_boxes(std::move(boxes));  // sorted by first row
  const std::size_t first = pieces_.size();
  for (std::size_t n = 0; n < boxes.size(); ++n) {
    tensors_[tensor].pieces.push_back({boxes[n], 0, 0});
    pieces_.push_back({tensor, n, {}});
  }
  for (const Holding& holding : holdings) {
    for (std::size_t n = 0; n < boxes.size(); ++n) {
      if (boxes[n].row0 > holding.place.box.row0) break;
      if (intersect(boxes[n], holding.place.box) != holding.place.box) continue;
      pieces_[first + n].holdings.push_back(holding);
      break;
    }
  }
}

std::vector<Copy> SavePlan::copies_of(const Strip& strip) const {
  const PlacedBox target{strip.box, 0};
  std::vector<Copy> copies;
  for (const Holding& holding : piece_of(strip).holdings)
    for (const RoutePiece& piece : route({&holding.place, 1}, {&target, 1}, strip.box))
      copies.push_back({&holding, piece});
  return copies;
}

std::map<std::string, StoredShape> SavePlan::shapes() const {
  std::map<std::string, StoredShape> shapes;
  for (const PlanTensor& tensor : tensors_) shapes[tensor.name] = tensor.shape;
  return shapes;
}

FileIndex SavePlan::index() const {
  FileIndex index;
  for (const PlanTensor& tensor : tensors_)
    if (!tensor.pieces.empty()) index[tensor.name] = tensor.pieces;
  return index;
}

std::string describe_parts(const std::vector<TensorPart>& parts, bool write) {
  Packer packer;
  for (std::size_t n = 0; write && n < parts.size(); ++n) {
    const TensorPart& part = parts[n];
    if (is_half(part.dtype))
      throw_error(ExitCode::internal, "{}: {} is never stored", part.name, name_of(part.dtype));
    packer.add(static_cast<index_t>(n));
    packer.add(part.name);
    packer.add(static_cast<index_t>(part.dtype));
    packer.add(part.rows);
    packer.add(part.cols);
    packer.add(index_t{part.vector});
    packer.add(std::count_if(part.boxes.begin(), part.boxes.end(),
                             [](const PlacedBox& place) { return !place.box.empty(); }));
    for (const auto& [box, offset] : part.boxes)
      if (!box.empty())
        for (const index_t number : {box.row0, box.col0, box.rows, box.cols, offset})
          packer.add(number);
  }
  return packer.take();
}

}  // namespace t3d
