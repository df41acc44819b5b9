// Each verb becomes one operation of the host group's engine. Its tag is taken at the call, so it
// meets its counterparts whenever it starts; it starts when the copies down have landed. There is
// no second queue of operations that somebody would have to remember to advance.
#include "comm/staged/staged.hpp"

#include <limits>
#include <numeric>
#include <utility>

#include "comm/collectives.hpp"
#include "comm/cost.hpp"
#include "comm/group.hpp"
#include "device/ranges.hpp"

namespace t3d {
namespace {

/// What all staged groups of one rank share.
struct Staging {
  Device& device;
  Queue& queue;
  // Slow to get, and a step repeats the same requests: everything is kept.
  ScratchPool pool{[this](index_t bytes) { return device.host_allocate(bytes); },
                   [this](void* data) { device.host_release(data); },
                   std::numeric_limits<std::size_t>::max()};
  Staging(Device& device_, Queue& queue_) : device(device_), queue(queue_) {}
};

class StagedOperation final : public Operation {
 public:
  using Make = std::function<OperationPtr()>;

  StagedOperation(std::shared_ptr<Staging> staging, int own_world_rank, index_t staging_bytes,
                  Traffic traffic)
      : staging_(std::move(staging)),
        memory_(staging_->pool, staging_bytes),
        own_world_rank_(own_world_rank),
        traffic_(traffic) {}

  [[nodiscard]] std::byte* memory() const { return memory_.data(); }
  void bring_down(TensorView staged, ConstTensorView from) {
    staging_->device.copy(staged.data, from.data, from.bytes(), staging_->queue);
  }
  void bring_up(TensorView to, ConstTensorView staged) { up_.emplace_back(to, staged); }
  /// All that goes down is queued; `make` makes the host group's operation once it is there.
  void then(Make make) {
    make_ = std::move(make);
    down_ = staging_->queue.mark();
  }

  bool advance() override {
    if (inner_ == nullptr) {
      if (!down_->reached()) return false;
      inner_ = make_();
    }
    if (!inner_->advance()) return false;
    for (const auto& [to, staged] : up_)
      staging_->device.copy(to.data, staged.data, staged.bytes(), staging_->queue);
    // Whoever gets this memory next waits for a marker on the same queue before the host writes.
    memory_.done();
    return true;
  }
  [[nodiscard]] Traffic traffic() const override { return traffic_; }
  void missing(std::set<int>& peers) const override {
    if (inner_ == nullptr)
      peers.insert(own_world_rank_);  // its own device keeps it waiting
    else
      inner_->missing(peers);
  }

 private:
  std::shared_ptr<Staging> staging_;
  Scratch memory_;
  int own_world_rank_;
  Traffic traffic_;
  std::vector<std::pair<TensorView, ConstTensorView>> up_;
  std::unique_ptr<Marker> down_;
  Make make_;
  OperationPtr inner_;
};

/// Finished for the queue when the way up is queued, for the host when it is done.
class StagedWork final : public Work::Impl {
 public:
  StagedWork(std::shared_ptr<Staging> staging, Work inner)
      : staging_(std::move(staging)), inner_(std::move(inner)) {}
  bool test() override {
    if (!inner_.done()) return false;
    if (up_ == nullptr) up_ = staging_->queue.mark();
    return up_->reached();
  }
  void wait() override {
    inner_.wait_host();
    staging_->queue.mark()->wait();
  }
  void order(Queue& queue) override {
    if (&queue == &staging_->queue)
      inner_.wait_host();
    else
      wait();
  }

 private:
  std::shared_ptr<Staging> staging_;
  Work inner_;
  std::unique_ptr<Marker> up_;
};

/// A Party that needs no group any more when the operation is made.
struct LateParty {
  Engine& engine;
  std::vector<int> members;
  int rank, tag;
  [[nodiscard]] Party party() const { return {engine, members, rank, tag}; }
};

class StagedCommunicator final : public Communicator {
 public:
  StagedCommunicator(std::shared_ptr<Staging> staging, GroupCommunicator& host,
                     std::unique_ptr<Communicator> owned)
      : staging_(std::move(staging)), owned_(std::move(owned)), host_(host) {}

  [[nodiscard]] int rank() const override { return host_.rank(); }
  [[nodiscard]] int size() const override { return host_.size(); }
  [[nodiscard]] const std::string& axis() const override { return host_.axis(); }

  [[nodiscard]] Work all_gather(ConstTensorView part, TensorView whole,
                                std::span<const index_t> counts) override;
  [[nodiscard]] Work reduce_scatter(ConstTensorView whole, TensorView part,
                                    std::span<const index_t> counts) override;
  [[nodiscard]] Work all_reduce(TensorView x, ReduceOp op) override;
  [[nodiscard]] Work broadcast(TensorView x, int root) override;
  [[nodiscard]] Work exchange(std::vector<Exchange> messages) override;
  void barrier() override {
    staging_->queue.synchronize();
    host_.barrier();
  }
  [[nodiscard]] std::unique_ptr<Communicator> subgroup(const std::vector<int>& members,
                                                       std::string axis) override;

  void progress() override { host_.progress(); }
  [[nodiscard]] Ledger& ledger() override { return host_.ledger(); }
  [[nodiscard]] const std::map<std::string, double>& wait_seconds() const override {
    return host_.wait_seconds();
  }
  [[nodiscard]] double wait_cpu_seconds() const override { return host_.wait_cpu_seconds(); }
  void set_slowdown(double factor) override { host_.set_slowdown(factor); }
  void set_watchdog(double seconds) override { host_.set_watchdog(seconds); }
  void set_wait_limit(const std::string& axis, double seconds) override {
    host_.set_wait_limit(axis, seconds);
  }

 private:
  using Operation = std::unique_ptr<StagedOperation>;
  [[nodiscard]] Operation make(index_t staging_bytes, Traffic traffic) const {
    const int own = host_.members()[static_cast<std::size_t>(rank())];
    return std::make_unique<StagedOperation>(staging_, own, staging_bytes, traffic);
  }
  [[nodiscard]] LateParty late_party() {
    return {host_.engine(), host_.members(), rank(), host_.next_tag()};
  }
  [[nodiscard]] Work start(Operation operation, Verb verb) {
    const NamedRange range(staging_->device.ranges(), name_of(verb), axis());
    return Work(std::make_unique<StagedWork>(
        staging_, host_.engine().start(std::move(operation), verb, axis(), host_.context())));
  }
  void copy_on_device(TensorView to, ConstTensorView from) {
    if (to.data != from.data)
      staging_->device.copy(to.data, from.data, from.bytes(), staging_->queue);
  }
  /// A verb of a rank alone, whose copies are queued.
  [[nodiscard]] Work done_on_device(Verb verb) {
    host_.engine().check();
    ledger().count(verb, axis(), 0);
    return Work(std::make_unique<StagedWork>(staging_, Work()));
  }

  std::shared_ptr<Staging> staging_;
  std::unique_ptr<Communicator> owned_;  // what host_ is, where nobody else owns it
  GroupCommunicator& host_;
};

Work StagedCommunicator::all_gather(ConstTensorView part, TensorView whole,
                                    std::span<const index_t> counts) {
  check_all_gather(*this, part, whole, counts);
  if (size() == 1) {
    copy_on_device(whole, part);
    return done_on_device(Verb::all_gather);
  }
  auto operation = make(whole.bytes(), all_gather_traffic(counts, rank(), whole.dtype));
  const TensorView staged(operation->memory(), whole.dtype, 1, whole.count());
  const index_t first = std::accumulate(counts.begin(), counts.begin() + rank(), index_t{0});
  const index_t end = first + part.count();
  const TensorView own = staged.col_range(first, part.count());
  operation->bring_down(own, part);
  if (part.data == whole.flat().at(0, first)) {  // in place: not over what was not gathered
    operation->bring_up(whole.flat().col_range(0, first), staged.col_range(0, first));
    operation->bring_up(whole.flat().col_range(end, whole.count() - end),
                        staged.col_range(end, whole.count() - end));
  } else {
    operation->bring_up(whole, staged);
  }
  operation->then([late = late_party(), own, staged,
                   parts = std::vector<index_t>(counts.begin(), counts.end())] {
    return make_all_gather(late.party(), own, staged, parts);
  });
  return start(std::move(operation), Verb::all_gather);
}

Work StagedCommunicator::reduce_scatter(ConstTensorView whole, TensorView part,
                                        std::span<const index_t> counts) {
  check_reduce_scatter(*this, whole, part, counts);
  if (size() == 1 && whole.dtype == part.dtype) {
    copy_on_device(part, whole);
    return done_on_device(Verb::reduce_scatter);
  }
  constexpr index_t kAlignment = 64;
  const index_t sum_at = (whole.bytes() + kAlignment - 1) / kAlignment * kAlignment;
  auto operation = make(sum_at + part.bytes(), reduce_scatter_traffic(counts, rank(), whole.dtype));
  const TensorView staged(operation->memory(), whole.dtype, 1, whole.count());
  const TensorView sum(operation->memory() + sum_at, part.dtype, 1, part.count());
  operation->bring_down(staged, whole);
  operation->bring_up(part, sum);
  operation->then([late = late_party(), staged, sum,
                   parts = std::vector<index_t>(counts.begin(), counts.end())] {
    return make_reduce_scatter(late.party(), ReduceOp::sum, staged, sum, parts);
  });
  return start(std::move(operation), Verb::reduce_scatter);
}

Work StagedCommunicator::all_reduce(TensorView x, ReduceOp op) {
  check_all_reduce(x, op);
  if (size() == 1) return done_on_device(Verb::all_reduce);
  auto operation = make(x.bytes(), all_reduce_traffic(x.count(), size(), rank(), x.dtype));
  const TensorView staged(operation->memory(), x.dtype, 1, x.count());
  operation->bring_down(staged, x);
  operation->bring_up(x, staged);
  LateParty late = late_party();
  operation->then([late = std::move(late), second = host_.next_tag(), staged, op] {
    return make_all_reduce(late.party(), second, staged, op);
  });
  return start(std::move(operation), Verb::all_reduce);
}

Work StagedCommunicator::broadcast(TensorView x, int root) {
  check_broadcast(*this, x, root);
  if (size() == 1) return done_on_device(Verb::broadcast);
  auto operation = make(x.bytes(), broadcast_traffic(x.count(), size(), rank(), root, x.dtype));
  const TensorView staged(operation->memory(), x.dtype, 1, x.count());
  if (root == rank())
    operation->bring_down(staged, x);
  else
    operation->bring_up(x, staged);
  operation->then(
      [late = late_party(), staged, root] { return make_broadcast(late.party(), staged, root); });
  return start(std::move(operation), Verb::broadcast);
}

Work StagedCommunicator::exchange(std::vector<Exchange> messages) {
  check_exchange(*this, messages);
  for (const Exchange& own : messages_to_self(rank(), messages))
    copy_on_device(own.receive, own.send);
  if (size() == 1) return done_on_device(Verb::exchange);
  index_t bytes = 0;
  for (const Exchange& message : messages)
    if (message.peer != rank()) bytes += message.send.bytes() + message.receive.bytes();
  auto operation = make(bytes, exchange_traffic(*this, messages));
  std::byte* place = operation->memory();
  std::vector<Exchange> staged;
  for (const Exchange& message : messages) {
    if (message.peer == rank()) continue;
    const auto& [peer, send, receive] = message;
    const TensorView out(place, send.dtype, send.rows, send.cols);
    const TensorView in(place + send.bytes(), receive.dtype, receive.rows, receive.cols);
    operation->bring_down(out, send);
    operation->bring_up(receive, in);
    staged.push_back({peer, out, in});
    place += send.bytes() + receive.bytes();
  }
  operation->then([late = late_party(), staged = std::move(staged)] {
    return make_exchange(late.party(), staged);
  });
  return start(std::move(operation), Verb::exchange);
}

std::unique_ptr<Communicator> StagedCommunicator::subgroup(const std::vector<int>& members,
                                                           std::string axis) {
  auto group = host_.subgroup(members, std::move(axis));
  auto& host = dynamic_cast<GroupCommunicator&>(*group);
  return std::make_unique<StagedCommunicator>(staging_, host, std::move(group));
}

}  // namespace

std::unique_ptr<Communicator> make_staged_communicator(Communicator& host_world, Device& device,
                                                       Queue& queue) {
  auto* host = dynamic_cast<GroupCommunicator*>(&host_world);
  T3D_CHECK(host != nullptr, "staging goes over a communicator that moves host memory");
  return std::make_unique<StagedCommunicator>(std::make_shared<Staging>(device, queue), *host,
                                              nullptr);
}

}  // namespace t3d
