// Who sends what when one rank writes the file of a group. Every rank of the group computes the
// same plan from the same descriptions, so no message needs a header.
//
//   piece   a stored box: boxes of the group's ranks, merged where they form a bigger box
//   strip   some rows of a piece, so that memory stays bounded
//   round   strips of at most kRoundBytes together: one message from each rank to the writer
#pragma once
#include <string>
#include <vector>

#include "core/box.hpp"
#include "io/checkpoint/checkpoint.hpp"
#include "io/checkpoint/manifest.hpp"

namespace t3d {

inline constexpr index_t kRoundBytes = index_t{64} << 20;

/// One box of one rank of the group.
struct Holding {
  int rank = 0;       // in the group
  index_t part = 0;   // number of the part in that rank's list
  index_t which = 0;  // number of the box in the part
  Box box;
};

struct PlanTensor {
  std::string name;
  ManifestTensor shape;                        // its pieces too, without places in the file yet
  std::vector<std::vector<Holding>> holdings;  // per piece
};

struct Strip {
  std::size_t tensor = 0, piece = 0;
  Box box;
};

struct Copy {  // the elements that one holding gives to one strip
  const Holding* holding = nullptr;
  Box box;
};

class SavePlan {
 public:
  /// From the descriptions of the group's ranks, in rank order. Error(io) when they disagree.
  explicit SavePlan(const std::vector<std::string>& descriptions);

  [[nodiscard]] const std::vector<PlanTensor>& tensors() const { return tensors_; }
  [[nodiscard]] const std::vector<std::vector<Strip>>& rounds() const { return rounds_; }
  /// In the order in which they are packed, rank after rank.
  [[nodiscard]] std::vector<Copy> copies_of(const Strip& strip) const;
  [[nodiscard]] index_t bytes_of(const Strip& strip) const;
  [[nodiscard]] index_t total_bytes() const { return total_bytes_; }
  /// All tensors and pieces as a fragment of the manifest.
  [[nodiscard]] Manifest fragment() const;

 private:
  void place_holdings(PlanTensor& tensor, const std::vector<Holding>& holdings);
  void cut_into_rounds();

  std::vector<PlanTensor> tensors_;
  std::vector<std::vector<Strip>> rounds_;
  index_t total_bytes_ = 0;
};

/// What a rank stores, for the others of its group.
[[nodiscard]] std::string describe_parts(const std::vector<TensorPart>& parts, bool write);

}  // namespace t3d
