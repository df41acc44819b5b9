// Seconds of a slab for any number of sequences, without making a plan for each number: work is
// taken as a fixed part (the update) and a part in proportion to sequences. What whole sequences
// over k, or micro-batches, add to that is left to predict_step().
#pragma once
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "hetero/planner/build_plan.hpp"
#include "hetero/speed/speeds.hpp"

namespace t3d {

/// Work of one rank by class, in the class's unit.
struct LinearWork {
  std::array<double, kWorkClasses> fixed{}, per_sequence{};
  [[nodiscard]] double of(std::size_t kind, double sequences) const {
    return fixed[kind] + sequences * per_sequence[kind];
  }
  /// In whole units, of a step with `sequences` on the slab.
  [[nodiscard]] StepWork step(double sequences) const;
};

/// Of a slab's ranks by (j, k), with the widths of `shape`; its sequences are not read.
[[nodiscard]] std::vector<LinearWork> slab_work(const PlanRecipe& recipe,
                                                const ReplicaShape& shape);

class SlabSeconds {
 public:
  explicit SlabSeconds(const Speeds& speeds) : speeds_(speeds) {}
  /// The next slab: its world ranks by (j, k) and their work, which must live on. `usual`: about as
  /// many sequences as a slab has.
  void add(std::span<const int> ranks, const std::vector<LinearWork>& work, double usual);
  /// Ranks of a slab meet at every product: sum over the classes of the slowest rank's seconds.
  /// Without whole matrices, which are dealt by themselves (matrix_speeds.hpp).
  [[nodiscard]] double seconds(std::size_t slab, index_t sequences) const;
  [[nodiscard]] std::size_t slabs() const { return slabs_.size(); }

 private:
  struct Member {
    const RankSpeed* speed = nullptr;
    const LinearWork* work = nullptr;
  };
  /// fixed + sequences * each: where one rank of stated rates is the slowest in all classes.
  struct Line {
    double fixed = 0, each = 0;
  };
  [[nodiscard]] static std::optional<Line> line_of(const std::vector<Member>& members);

  const Speeds& speeds_;
  std::vector<std::vector<Member>> slabs_;  // those that are not faster than another in all classes
  std::vector<std::optional<Line>> lines_;  // by slab
};

}  // namespace t3d
