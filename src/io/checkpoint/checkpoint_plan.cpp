#include "io/checkpoint/checkpoint_plan.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "core/error.hpp"

namespace t3d {
namespace {

/// Numbers and names one after another; both ends are the same program.
class Packer {
 public:
  void add(index_t value) { text_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void add(const std::string& text) {
    add(std::ssize(text));
    text_ += text;
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

class Unpacker {
 public:
  explicit Unpacker(const std::string& text) : text_(text) {}
  index_t number() {
    index_t value = 0;
    std::memcpy(&value, text_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::string name() {
    const auto length = static_cast<std::size_t>(number());
    at_ += length;
    return text_.substr(at_ - length, length);
  }
  [[nodiscard]] bool more() const { return at_ < text_.size(); }

 private:
  const std::string& text_;
  std::size_t at_ = 0;
};

struct Collected {
  ManifestTensor shape;
  std::vector<Holding> holdings;
};

void collect(const std::string& description, int rank, std::map<std::string, Collected>& all) {
  Unpacker from(description);
  while (from.more()) {
    const index_t part = from.number();
    const std::string name = from.name();
    ManifestTensor shape;
    shape.dtype = static_cast<DType>(from.number());
    shape.rows = from.number();
    shape.cols = from.number();
    shape.vector = from.number() != 0;
    Collected& tensor = all.try_emplace(name, Collected{shape, {}}).first->second;
    const ManifestTensor& known = tensor.shape;
    if (known.dtype != shape.dtype || known.rows != shape.rows || known.cols != shape.cols ||
        known.vector != shape.vector)
      throw_error(ExitCode::io, "ranks disagree on the shape of {}", name);
    const index_t boxes = from.number();
    for (index_t n = 0; n < boxes; ++n) {
      const index_t which = from.number();
      Box box;
      for (index_t* field : {&box.row0, &box.col0, &box.rows, &box.cols}) *field = from.number();
      tensor.holdings.push_back({rank, part, which, box});
    }
  }
}

}  // namespace

SavePlan::SavePlan(const std::vector<std::string>& descriptions) {
  std::map<std::string, Collected> all;
  for (std::size_t rank = 0; rank < descriptions.size(); ++rank)
    collect(descriptions[rank], static_cast<int>(rank), all);
  for (auto& [name, tensor] : all) {
    tensors_.push_back({name, std::move(tensor.shape), {}});
    place_holdings(tensors_.back(), tensor.holdings);
  }
  cut_into_rounds();
}

void SavePlan::place_holdings(PlanTensor& tensor, const std::vector<Holding>& holdings) {
  std::vector<Box> boxes;
  for (const Holding& holding : holdings) boxes.push_back(holding.box);
  for (const Box& box : merge_boxes(std::move(boxes)))
    tensor.shape.pieces.push_back({box, 0, 0, 0});
  const auto& pieces = tensor.shape.pieces;  // sorted by first row
  tensor.holdings.resize(pieces.size());
  for (const Holding& holding : holdings) {
    for (std::size_t n = 0; n < pieces.size(); ++n) {
      if (pieces[n].box.row0 > holding.box.row0) break;
      if (intersect(pieces[n].box, holding.box) != holding.box) continue;
      tensor.holdings[n].push_back(holding);
      break;
    }
  }
}

void SavePlan::cut_into_rounds() {
  index_t filled = 0;
  for (std::size_t t = 0; t < tensors_.size(); ++t) {
    const ManifestTensor& shape = tensors_[t].shape;
    for (std::size_t n = 0; n < shape.pieces.size(); ++n) {
      const Box& piece = shape.pieces[n].box;
      const index_t row_bytes = piece.cols * size_of(shape.dtype);
      for (index_t row = piece.row0; row < piece.row1();) {
        const index_t fit = std::max<index_t>((kRoundBytes - filled) / row_bytes, 0);
        if (rounds_.empty() || (fit == 0 && filled > 0)) {
          rounds_.emplace_back();
          filled = 0;
          continue;
        }
        const index_t rows = std::clamp<index_t>(fit, 1, piece.row1() - row);
        rounds_.back().push_back({t, n, {row, piece.col0, rows, piece.cols}});
        filled += rows * row_bytes;
        total_bytes_ += rows * row_bytes;
        row += rows;
      }
    }
  }
}

std::vector<Copy> SavePlan::copies_of(const Strip& strip) const {
  std::vector<Copy> copies;
  for (const Holding& holding : tensors_[strip.tensor].holdings[strip.piece]) {
    const Box common = intersect(holding.box, strip.box);
    if (!common.empty()) copies.push_back({&holding, common});
  }
  return copies;
}

index_t SavePlan::bytes_of(const Strip& strip) const {
  return strip.box.count() * size_of(tensors_[strip.tensor].shape.dtype);
}

Manifest SavePlan::fragment() const {
  Manifest fragment;
  for (const PlanTensor& tensor : tensors_) fragment.tensors[tensor.name] = tensor.shape;
  return fragment;
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
    std::vector<index_t> filled;
    for (index_t which = 0; which < std::ssize(part.boxes); ++which) {
      const TensorBox& box = part.boxes[static_cast<std::size_t>(which)];
      if (box.rows > 0 && box.cols > 0) filled.push_back(which);
    }
    packer.add(std::ssize(filled));
    for (const index_t which : filled) {
      const TensorBox& box = part.boxes[static_cast<std::size_t>(which)];
      for (const index_t number : {which, box.row0, box.col0, box.rows, box.cols})
        packer.add(number);
    }
  }
  return packer.take();
}

}  // namespace t3d
