// Communicator: a group of ranks and seven verbs. All but barrier and subgroup are asynchronous and
// take per-rank element counts (equal counts are a special case, zero counts are legal). Reductions
// sum in a fixed order with fp32 (fp64 for fp64) accumulation and one final rounding, so results
// are bitwise reproducible and identical on every back end and on every rank.
//
// The order is 0..n-1, with one exception: an all_reduce of up to kSmallAllReduce elements over
// n > kFlatRanks ranks (comm/cost.hpp) sums over a tree. With D the largest power of two <= n, and
// + the reduction, leaf r of D is x[r] + x[D + r], or x[r] where there is no rank D + r; then
// neighbours are added, (0 + 1), (2 + 3), ..., and neighbours of those, until one is left.
//
// Every rank of the group must issue the same verbs in the same order. Buffers must stay valid and
// untouched until the Work is waited for. A failed group throws Error(peer_lost) from then on.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/ledger.hpp"
#include "device/device.hpp"
#include "device/tensor_view.hpp"

namespace t3d {

enum class ReduceOp { sum, max, bit_or };  // max: fp64/fp32/int32; bit_or: int32

/// Handle of one asynchronous verb. Move-only; destroying an unfinished one waits for it.
class Work {
 public:
  class Impl {
   public:
    virtual ~Impl() = default;
    /// Advances without blocking; true when finished.
    virtual bool test() = 0;
    /// Blocks, polling, with the group's deadline.
    virtual void wait() = 0;
    /// What is queued on `queue` from now on comes after the result; blocks where nothing better is
    /// possible.
    virtual void order(Queue& queue);
  };
  Work() = default;
  explicit Work(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
  Work(Work&&) noexcept = default;
  Work& operator=(Work&& other);  // NOLINT: waits for what it replaces, which may throw
  ~Work();

  /// What is queued after this sees the result. On a CPU queue, which runs everything inline, that
  /// means waiting here; on a GPU queue the host goes on.
  void wait(Queue& queue);
  /// The host itself needs the result.
  void wait_host();
  [[nodiscard]] bool done();

 private:
  std::unique_ptr<Impl> impl_;
};

/// One message of an exchange: `send` goes to and `receive` comes from `peer`; either may be empty.
/// A message to oneself is a copy. Several messages with one peer match in order.
struct Exchange {
  int peer = 0;
  ConstTensorView send;  // contiguous
  TensorView receive;    // contiguous
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// The axis label under which bytes are counted: "i", "j", "k", "ij", "d", "world", ...
  [[nodiscard]] virtual const std::string& axis() const = 0;

  /// whole = parts of ranks 0..n-1 one after another; part of rank r has counts[r] elements.
  /// `part` may be the own place inside `whole` (in place).
  [[nodiscard]] virtual Work all_gather(ConstTensorView part, TensorView whole,
                                        std::span<const index_t> counts) = 0;
  /// part = own piece (counts[rank] elements) of the sum over ranks of `whole`. `part` may lie at
  /// the own place inside `whole`. `part` may be wider than `whole` (bf16 summed into fp32)
  /// or, where they do not overlap, narrower (fp32 summed into bf16).
  [[nodiscard]] virtual Work reduce_scatter(ConstTensorView whole, TensorView part,
                                            std::span<const index_t> counts) = 0;
  [[nodiscard]] virtual Work all_reduce(TensorView x, ReduceOp op) = 0;  // in place
  [[nodiscard]] virtual Work broadcast(TensorView x, int root) = 0;
  [[nodiscard]] virtual Work exchange(std::vector<Exchange> messages) = 0;
  virtual void barrier() = 0;
  /// A new group of `members` (ranks of this group, in the new order, this rank among them). Every
  /// rank of this group calls it at once; the member lists of different ranks are equal or
  /// disjoint.
  [[nodiscard]] virtual std::unique_ptr<Communicator> subgroup(const std::vector<int>& members,
                                                               std::string axis) = 0;

  /// Advances whatever is in flight, in any group of this process; cheap when nothing is.
  virtual void progress() = 0;
  [[nodiscard]] virtual Ledger& ledger() = 0;  // one per rank, shared by all its groups
  /// Seconds that this rank has spent blocked in wait() so far, by axis, over all its groups.
  [[nodiscard]] virtual const std::map<std::string, double>& wait_seconds() const = 0;
  /// CPU time of this thread inside those waits.
  [[nodiscard]] virtual double wait_cpu_seconds() const = 0;
  /// Emulation: this rank computes so many times slower from now on (comm/dilation.hpp); CPU ranks.
  virtual void set_slowdown(double factor) = 0;
  /// After this many seconds blocked in one wait without any progress of this rank (a message of
  /// any group comes or goes, an operation ends): Error(peer_lost) that says what was waited for,
  /// on which axis, who was missing, and what else was under way. 0 = for ever. Shared by all
  /// groups.
  virtual void set_watchdog(double seconds) = 0;
  /// The same for groups under the label `axis` that are made from now on, by any group of this
  /// rank: those whose members may be busy with files, and silent, for longer.
  virtual void set_wait_limit(const std::string& axis, double seconds) = 0;
};

/// The world of a program that runs alone, without MPI: copies, sends nothing.
[[nodiscard]] std::unique_ptr<Communicator> make_single_communicator();

/// Claims to be rank `rank` of `size` and counts bytes exactly as the real ones do, but touches no
/// memory: for dry runs.
[[nodiscard]] std::unique_ptr<Communicator> make_dry_communicator(int rank, int size);

/// Runs `body(world)` on `ranks` threads that form one in-process group; rethrows the first error
/// after all have ended (a failed rank breaks the group, so nobody hangs).
void run_local_ranks(int ranks, const std::function<void(Communicator& world)>& body);

}  // namespace t3d
