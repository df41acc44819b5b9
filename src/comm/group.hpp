// GroupCommunicator: the communicator of every back end that has a Transport. Checks the call,
// makes the state machine, and hands it to the rank's engine.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "comm/collectives.hpp"
#include "comm/engine.hpp"

namespace t3d {

class GroupCommunicator final : public Communicator {
 public:
  /// All ranks of the engine's transport, in order, under the axis label "world".
  static std::unique_ptr<Communicator> make_world(std::unique_ptr<Transport> transport);

  GroupCommunicator(std::shared_ptr<Engine> engine, std::vector<int> members, int rank,
                    std::string axis, int context);
  ~GroupCommunicator() override;
  GroupCommunicator(const GroupCommunicator&) = delete;
  GroupCommunicator& operator=(const GroupCommunicator&) = delete;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return static_cast<int>(members_.size()); }
  [[nodiscard]] const std::string& axis() const override { return axis_; }

  [[nodiscard]] Work all_gather(ConstTensorView part, TensorView whole,
                                std::span<const index_t> counts) override;
  [[nodiscard]] Work reduce_scatter(ConstTensorView whole, TensorView part,
                                    std::span<const index_t> counts) override;
  [[nodiscard]] Work all_reduce(TensorView x, ReduceOp op) override;
  [[nodiscard]] Work broadcast(TensorView x, int root) override;
  [[nodiscard]] Work exchange(std::vector<Exchange> messages) override;
  void barrier() override;
  [[nodiscard]] std::unique_ptr<Communicator> subgroup(const std::vector<int>& members,
                                                       std::string axis) override;

  void progress() override { engine_->progress(); }
  [[nodiscard]] Ledger& ledger() override { return engine_->ledger(); }
  [[nodiscard]] const std::map<std::string, double>& wait_seconds() const override {
    return engine_->wait_seconds();
  }
  [[nodiscard]] double wait_cpu_seconds() const override { return engine_->wait_cpu_seconds(); }
  void set_slowdown(double factor) override { engine_->set_slowdown(factor); }
  void set_watchdog(double seconds) override { engine_->set_watchdog(seconds); }
  void set_wait_limit(const std::string& axis, double seconds) override {
    engine_->set_wait_limit(axis, seconds);
  }

  // For back ends that start operations of this group themselves (comm/staged).
  [[nodiscard]] Engine& engine() { return *engine_; }
  [[nodiscard]] const std::vector<int>& members() const { return members_; }
  [[nodiscard]] int context() const { return context_; }
  /// Taken in the order of the calls, whenever the operation starts: that is what makes it meet its
  /// counterparts on the other ranks.
  int next_tag();

 private:
  [[nodiscard]] Party party(int tag) const { return {*engine_, members_, rank_, tag}; }
  /// The smallest group number that is free on all `members`.
  int agree_on_context(const std::vector<int>& members);

  std::shared_ptr<Engine> engine_;
  std::vector<int> members_;  // world ranks
  int rank_;
  std::string axis_;
  int context_;  // -1: alone, sends nothing
  int sequence_ = 0;
};

/// Checks shared by all back ends: each throws an internal Error on a wrong call.
void check_parts(const Communicator& group, ConstTensorView part, ConstTensorView whole,
                 std::span<const index_t> counts);
void check_all_gather(const Communicator& group, ConstTensorView part, ConstTensorView whole,
                      std::span<const index_t> counts);
void check_reduce_scatter(const Communicator& group, ConstTensorView whole, ConstTensorView part,
                          std::span<const index_t> counts);
void check_all_reduce(ConstTensorView x, ReduceOp op);
void check_broadcast(const Communicator& group, ConstTensorView x, int root);
void check_exchange(const Communicator& group, std::span<const Exchange> messages);
/// What this rank sends to others; messages to one peer count as one.
[[nodiscard]] Traffic exchange_traffic(const Communicator& group,
                                       std::span<const Exchange> messages);
/// This rank's position in `members`, after checking them.
[[nodiscard]] int position_in(const Communicator& group, const std::vector<int>& members);

}  // namespace t3d
