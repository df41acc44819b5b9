#include "comm/staged/mixed.hpp"

#include <utility>

#include "core/error.hpp"

namespace t3d {
namespace {

class MixedCommunicator final : public Communicator {
 public:
  /// `places`: of each member of `staged` in `gpus`, -1 = not there.
  MixedCommunicator(std::unique_ptr<Communicator> staged, std::unique_ptr<Communicator> gpus,
                    std::vector<int> places)
      : staged_(std::move(staged)), gpus_(std::move(gpus)), places_(std::move(places)) {
    T3D_CHECK(places_[static_cast<std::size_t>(rank())] == gpus_->rank(),
              "rank {} of {} has place {} of the GPU ranks", rank(), axis(), gpus_->rank());
  }

  [[nodiscard]] int rank() const override { return staged_->rank(); }
  [[nodiscard]] int size() const override { return staged_->size(); }
  [[nodiscard]] const std::string& axis() const override { return staged_->axis(); }

  [[nodiscard]] Work all_gather(ConstTensorView part, TensorView whole,
                                std::span<const index_t> counts) override {
    return staged_->all_gather(part, whole, counts);
  }
  [[nodiscard]] Work reduce_scatter(ConstTensorView whole, TensorView part,
                                    std::span<const index_t> counts) override {
    return staged_->reduce_scatter(whole, part, counts);
  }
  [[nodiscard]] Work all_reduce(TensorView x, ReduceOp op) override {
    return staged_->all_reduce(x, op);
  }
  [[nodiscard]] Work broadcast(TensorView x, int root) override {
    return staged_->broadcast(x, root);
  }
  [[nodiscard]] Work exchange(std::vector<Exchange> messages) override {
    return staged_->exchange(std::move(messages));
  }
  void barrier() override { staged_->barrier(); }
  [[nodiscard]] std::unique_ptr<Communicator> subgroup(const std::vector<int>& members,
                                                       std::string axis) override;

  void progress() override { gpus_->progress(); }
  [[nodiscard]] Ledger& ledger() override { return gpus_->ledger(); }
  [[nodiscard]] const std::map<std::string, double>& wait_seconds() const override {
    return gpus_->wait_seconds();
  }
  [[nodiscard]] double wait_cpu_seconds() const override { return gpus_->wait_cpu_seconds(); }
  void set_slowdown(double factor) override { gpus_->set_slowdown(factor); }
  void set_watchdog(double seconds) override { gpus_->set_watchdog(seconds); }
  void set_wait_limit(const std::string& axis, double seconds) override {
    gpus_->set_wait_limit(axis, seconds);
  }

 private:
  std::unique_ptr<Communicator> staged_, gpus_;
  std::vector<int> places_;
};

std::unique_ptr<Communicator> MixedCommunicator::subgroup(const std::vector<int>& members,
                                                          std::string axis) {
  // First what all members do, then what the GPU ranks of this group do, each with those of its new
  // group: both in the same order everywhere.
  auto staged = staged_->subgroup(members, axis);
  std::vector<int> gpu_members, places;
  for (const int member : members) {
    const int place = places_[static_cast<std::size_t>(member)];
    places.push_back(place < 0 ? -1 : static_cast<int>(gpu_members.size()));
    if (place >= 0) gpu_members.push_back(place);
  }
  auto gpus = gpus_->subgroup(gpu_members, std::move(axis));
  if (gpu_members.size() == members.size()) return gpus;
  return std::make_unique<MixedCommunicator>(std::move(staged), std::move(gpus), std::move(places));
}

}  // namespace

std::unique_ptr<Communicator> make_mixed_communicator(std::unique_ptr<Communicator> staged,
                                                      std::unique_ptr<Communicator> gpus,
                                                      const std::vector<int>& gpu_ranks) {
  T3D_CHECK(std::ssize(gpu_ranks) == gpus->size(), "{} GPU ranks in a group of {}",
            gpu_ranks.size(), gpus->size());
  std::vector<int> places(static_cast<std::size_t>(staged->size()), -1);
  int place = 0;
  for (const int rank : gpu_ranks) places.at(static_cast<std::size_t>(rank)) = place++;
  return std::make_unique<MixedCommunicator>(std::move(staged), std::move(gpus), std::move(places));
}

}  // namespace t3d
