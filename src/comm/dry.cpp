// The communicator that moves nothing. One rank alone is a real group whose verbs are local copies;
// one rank of many only counts, by the formulas, and never touches memory.
#include "comm/communicator.hpp"
#include "comm/cost.hpp"
#include "comm/group.hpp"
#include "comm/reduce.hpp"

namespace t3d {
namespace {

class NoTransport final : public Transport {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 1; }
  Request send(int, int, const void*, index_t) override { return nobody(); }
  Request receive(int, int, void*, index_t) override { return nobody(); }
  void poll() override {}
  bool finished(Request) override { return true; }
  void cancel(Request) noexcept override {}

 private:
  static Request nobody() { throw_error(ExitCode::internal, "a message without a peer"); }
};

class DryCommunicator final : public Communicator {
 public:
  struct Books {
    Ledger ledger;
    std::map<std::string, double> wait_seconds;  // stays empty
  };
  DryCommunicator(std::shared_ptr<Books> books, int rank, int size, std::string axis)
      : books_(std::move(books)), rank_(rank), size_(size), axis_(std::move(axis)) {}

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] const std::string& axis() const override { return axis_; }

  Work all_gather(ConstTensorView part, TensorView whole,
                  std::span<const index_t> counts) override {
    check_parts(*this, part, whole, counts);
    return counted(Verb::all_gather, all_gather_traffic(counts, rank_, whole.dtype));
  }
  Work reduce_scatter(ConstTensorView whole, TensorView part,
                      std::span<const index_t> counts) override {
    check_parts(*this, part, whole, counts);
    check_reducible(ReduceOp::sum, whole.dtype, part.dtype);
    return counted(Verb::reduce_scatter, reduce_scatter_traffic(counts, rank_, whole.dtype));
  }
  Work all_reduce(TensorView x, ReduceOp op) override {
    check_reducible(op, x.dtype, x.dtype);
    return counted(Verb::all_reduce, all_reduce_traffic(x.count(), size_, rank_, x.dtype));
  }
  Work broadcast(TensorView x, int root) override {
    return counted(Verb::broadcast, broadcast_traffic(x.count(), size_, rank_, root, x.dtype));
  }
  Work exchange(std::vector<Exchange> messages) override {
    return counted(Verb::exchange, exchange_traffic(*this, messages));
  }
  void barrier() override { counted(Verb::barrier, barrier_traffic(size_)).wait_host(); }
  std::unique_ptr<Communicator> subgroup(const std::vector<int>& members,
                                         std::string axis) override {
    const int position = position_in(*this, members);
    return std::make_unique<DryCommunicator>(books_, position, static_cast<int>(members.size()),
                                             std::move(axis));
  }

  void progress() override {}
  [[nodiscard]] Ledger& ledger() override { return books_->ledger; }
  [[nodiscard]] const std::map<std::string, double>& wait_seconds() const override {
    return books_->wait_seconds;
  }
  [[nodiscard]] double wait_cpu_seconds() const override { return 0; }
  void set_slowdown(double) override {}
  void set_watchdog(double) override {}
  void set_wait_limit(const std::string&, double) override {}

 private:
  Work counted(Verb verb, const Traffic& traffic) {
    books_->ledger.count(verb, axis_, traffic.bytes, traffic.messages);
    return Work();
  }

  std::shared_ptr<Books> books_;
  int rank_;
  int size_;
  std::string axis_;
};

}  // namespace

std::unique_ptr<Communicator> make_single_communicator() {
  return GroupCommunicator::make_world(std::make_unique<NoTransport>());
}

std::unique_ptr<Communicator> make_dry_communicator(int rank, int size) {
  T3D_CHECK(rank >= 0 && rank < size, "rank {} of {}", rank, size);
  return std::make_unique<DryCommunicator>(std::make_shared<DryCommunicator::Books>(), rank, size,
                                           "world");
}

}  // namespace t3d
