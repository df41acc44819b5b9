// Who sends what when one rank writes the file of a group. Every rank of the group computes the
// same plan from the same descriptions, so no message needs a header.
//
//   piece   a stored box: boxes of the group's ranks, merged where they form a bigger box
//   strip   some rows of a piece, so that memory stays bounded (core/route.hpp)
//   round   strips of at most kRoundBytes together: one message from each rank to the writer
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/route.hpp"
#include "io/checkpoint/checkpoint.hpp"
#include "io/checkpoint/fragment.hpp"
#include "io/checkpoint/manifest.hpp"

namespace t3d {

/// One box of one rank of the group.
struct Holding {
  int rank = 0;      // in the group
  index_t part = 0;  // number of the part in that rank's list
  PlacedBox place;   // in the part's memory
};

struct PlanTensor {
  std::string name;
  StoredShape shape;
  std::vector<ManifestPiece> pieces;  // without places in the file yet
};

struct PlanPiece {
  std::size_t tensor = 0, number = 0;  // which of the tensor's pieces
  std::vector<Holding> holdings;
};

struct Copy {  // the elements that one holding gives to one strip
  const Holding* holding = nullptr;
  RoutePiece piece;
};

class SavePlan {
 public:
  /// From the descriptions of the group's ranks, in rank order. Error(io) when they disagree.
  explicit SavePlan(const std::vector<std::string>& descriptions);

  /// Of strips: their box's number is that of the piece.
  [[nodiscard]] const std::vector<std::vector<Strip>>& rounds() const { return rounds_; }
  /// In the order of the file.
  [[nodiscard]] const std::vector<PlanPiece>& pieces() const { return pieces_; }
  [[nodiscard]] const Box& box_of(const PlanPiece& piece) const {
    return tensors_[piece.tensor].pieces[piece.number].box;
  }
  [[nodiscard]] const PlanPiece& piece_of(const Strip& strip) const { return pieces_[strip.which]; }
  [[nodiscard]] const PlanTensor& tensor_of(const PlanPiece& piece) const {
    return tensors_[piece.tensor];
  }
  [[nodiscard]] const PlanTensor& tensor_of(const Strip& strip) const {
    return tensor_of(piece_of(strip));
  }
  [[nodiscard]] index_t element_bytes(const Strip& strip) const {
    return size_of(tensor_of(strip).shape.dtype);
  }
  /// In the order in which they are packed, rank after rank.
  [[nodiscard]] std::vector<Copy> copies_of(const Strip& strip) const;
  [[nodiscard]] std::map<std::string, StoredShape> shapes() const;
  /// All pieces, by tensor.
  [[nodiscard]] FileIndex index() const;
  /// For the manifest, without a file.
  [[nodiscard]] Fragment fragment() const { return fragment_of(shapes(), index()); }

 private:
  void add_pieces(std::size_t tensor, const std::vector<Holding>& holdings);

  std::vector<PlanTensor> tensors_;
  std::vector<PlanPiece> pieces_;  // in the order of the file
  std::vector<std::vector<Strip>> rounds_;
};

/// What a rank stores, for the others of its group.
[[nodiscard]] std::string describe_parts(const std::vector<TensorPart>& parts, bool write);

}  // namespace t3d
