#include <algorithm>
#include <deque>
#include <optional>

#include "hetero/cost/update_memory.hpp"
#include "hetero/cost/update_traffic.hpp"

namespace t3d {
namespace {

constexpr std::size_t kKinds = 4;       // matrices of a block
constexpr index_t kRanksOneByOne = 64;  // shares of more are taken for equal

class MatricesMemory {
 public:
  MatricesMemory(MemoryWalk& walk, const RankView& rank)
      : walk_(walk),
        rank_(rank),
        matrices_(hidden_matrices(rank.model)),
        here_(rank.number_in_cuboid()),
        owners_(rank.memo->owners(rank.model, rank.cut)) {
    add_shards();
  }

  // As WholeMatrices::transform_all.
  void run() {
    const index_t rounds = owners_.rounds();
    if (rounds > 0) gathers_.push_back(start(0));
    for (index_t round = 0; round < rounds; ++round) {
      if (round + 1 < rounds) gathers_.push_back(start(round + 1));
      if (owners_.busy_after(here_, round)) {
        returns_.push_back(send_back(round));
        continue;
      }
      Held own;
      if (const index_t number = owners_.ending(here_, round); number != MatrixOwners::kNone) {
        own = finish_gather();
        newton_schulz(matrix(number));
      }
      while (!gathers_.empty() && gathers_.front().number <= round) (void)finish_gather();
      returns_.push_back(send_back(round));
      returns_.clear();
    }
  }

 private:
  struct Gather {
    index_t number = 0;
    Held matrix;
    std::vector<Held> messages;
  };

  void add_shards() {
    const index_t ranks = rank_.p * rank_.q * rank_.r;
    for (index_t at = 0; at < ranks; ++at) {
      const Coord coord{rank_.coord.d, at / (rank_.q * rank_.r), at / rank_.r % rank_.q,
                        at % rank_.r};
      std::optional<RankView> other;
      if (ranks <= kRanksOneByOne) other.emplace(rank_.plan, coord, rank_.memo);
      const auto sizes = bucket_sizes(other ? *other : rank_);
      std::array<index_t, kKinds>& shards = shards_.emplace_back();
      for (std::size_t kind = 0; kind < kKinds; ++kind)
        shards[kind] = sizes[kFirstMatrix + kind].shard;
      if (!other) {
        shards_.resize(static_cast<std::size_t>(ranks), shards);
        return;
      }
    }
  }

  [[nodiscard]] const HiddenMatrix& matrix(index_t number) const {
    return matrices_[static_cast<std::size_t>(number)];
  }
  [[nodiscard]] Held workspace(index_t elements, DType dtype) {
    return walk_.take(MemoryKind::workspace, elements * size_of(dtype));
  }
  /// Of matrix `number`, what `rank` holds.
  [[nodiscard]] index_t part(index_t number, int rank) const {
    return shards_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(number) % kKinds];
  }
  void add(index_t elements, std::vector<Held>& messages) {
    if (elements > 0) messages.push_back(workspace(elements, rank_.accumulator));
  }

  [[nodiscard]] Gather start(index_t round) {
    Gather gather{round, {}, {}};
    const index_t own = owners_.beginning(here_, round);
    if (own != MatrixOwners::kNone)
      gather.matrix = workspace(matrix(own).rows * matrix(own).cols, rank_.accumulator);
    add_own_parts(round, &MatrixOwners::beginning, true, gather.messages);
    add_parts(own, false, gather.messages);
    return gather;
  }
  /// The oldest one; its matrix stays.
  Held finish_gather() {
    Held matrix = std::move(gathers_.front().matrix);
    gathers_.pop_front();
    return matrix;
  }
  [[nodiscard]] std::vector<Held> send_back(index_t round) {
    std::vector<Held> messages;
    add_parts(owners_.ending(here_, round), true, messages);
    add_own_parts(round, &MatrixOwners::ending, false, messages);
    return messages;
  }
  /// This rank's parts of the round's matrices, by owner.
  void add_own_parts(index_t round, index_t (MatrixOwners::*which)(int, index_t) const,
                     bool of_itself, std::vector<Held>& messages) {
    for (int owner = 0; owner < static_cast<int>(shards_.size()); ++owner) {
      const index_t number = (owners_.*which)(owner, round);
      if (number != MatrixOwners::kNone && (of_itself || owner != here_))
        add(part(number, here_), messages);
    }
  }
  /// What the ranks of the cuboid hold of this rank's matrix.
  void add_parts(index_t own, bool of_itself, std::vector<Held>& messages) {
    if (own == MatrixOwners::kNone) return;
    for (int rank = 0; rank < static_cast<int>(shards_.size()); ++rank)
      if (of_itself || rank != here_) add(part(own, rank), messages);
  }

  void newton_schulz(const HiddenMatrix& x) {
    const index_t small = std::min(x.rows, x.cols);
    const bool copies = is_half(rank_.activation);
    (void)workspace(3, DType::f64);
    const Held other = workspace(x.rows * x.cols, rank_.accumulator);
    const Held square = workspace(small * small, rank_.accumulator);
    const Held polynomial = workspace(small * small, rank_.accumulator);
    Held factor, product;
    if (copies) factor = workspace(x.rows * x.cols, DType::bf16);
    if (copies) product = workspace(small * small, DType::bf16);
  }

  MemoryWalk& walk_;
  const RankView& rank_;
  std::vector<HiddenMatrix> matrices_;
  int here_;
  const MatrixOwners& owners_;
  std::vector<std::array<index_t, kKinds>> shards_;  // by rank of the cuboid
  std::deque<Gather> gathers_;
  std::vector<std::vector<Held>> returns_;
};

}  // namespace

void walk_whole_matrices(MemoryWalk& walk, const RankView& rank) {
  MatricesMemory(walk, rank).run();
}

}  // namespace t3d
