#include "cuda/host_face.hpp"

#include <deque>
#include <utility>

namespace t3d::test {
namespace {

/// The device's copies of the host memory of one verb.
class Mirror {
 public:
  Mirror(Device& device, Queue& queue) : device_(device), queue_(queue) {}

  /// The contents go up now. Memory inside an earlier one's becomes a place inside its copy.
  TensorView up(ConstTensorView host) {
    const auto* begin = static_cast<const std::byte*>(host.data);
    for (const Buffer& buffer : buffers_) {
      const auto* first = static_cast<const std::byte*>(buffer.host.data);
      if (begin < first || begin + host.bytes() > first + buffer.host.bytes()) continue;
      auto* inside = static_cast<std::byte*>(buffer.copy.view().data) + (begin - first);
      return {inside, host.dtype, host.rows, host.cols};
    }
    buffers_.push_back(
        {host, Tensor(device_, host.dtype, host.rows, host.cols, MemoryKind::workspace)});
    device_.copy(buffers_.back().copy.view().data, host.data, host.bytes(), queue_);
    return buffers_.back().copy;
  }
  void down() {
    for (const Buffer& buffer : buffers_)
      device_.copy(const_cast<void*>(buffer.host.data), buffer.copy.view().data,
                   buffer.host.bytes(), queue_);
    queue_.synchronize();
  }
  [[nodiscard]] Queue& queue() { return queue_; }

 private:
  struct Buffer {
    ConstTensorView host;
    Tensor copy;
  };
  Device& device_;
  Queue& queue_;
  std::deque<Buffer> buffers_;
};

class MirroredWork final : public Work::Impl {
 public:
  MirroredWork(std::unique_ptr<Mirror> mirror, Work inner, bool host_waits)
      : mirror_(std::move(mirror)), inner_(std::move(inner)), host_waits_(host_waits) {}
  bool test() override {
    if (!inner_.done()) return false;
    mirror_->down();
    return true;
  }
  void wait() override {
    if (host_waits_)
      inner_.wait_host();
    else
      inner_.wait(mirror_->queue());
    mirror_->down();
  }

 private:
  std::unique_ptr<Mirror> mirror_;
  Work inner_;
  bool host_waits_;
};

class HostFace final : public Communicator {
 public:
  HostFace(Communicator& inner, std::unique_ptr<Communicator> owned, Device& device, Queue& queue)
      : owned_(std::move(owned)), inner_(inner), device_(device), queue_(queue) {}

  [[nodiscard]] int rank() const override { return inner_.rank(); }
  [[nodiscard]] int size() const override { return inner_.size(); }
  [[nodiscard]] const std::string& axis() const override { return inner_.axis(); }

  Work all_gather(ConstTensorView part, TensorView whole,
                  std::span<const index_t> counts) override {
    auto mirror = make_mirror();
    const TensorView to = mirror->up(whole);
    const TensorView from = mirror->up(part);
    return start(std::move(mirror), inner_.all_gather(from, to, counts));
  }
  Work reduce_scatter(ConstTensorView whole, TensorView part,
                      std::span<const index_t> counts) override {
    auto mirror = make_mirror();
    const TensorView from = mirror->up(whole);
    const TensorView to = mirror->up(part);
    return start(std::move(mirror), inner_.reduce_scatter(from, to, counts));
  }
  Work all_reduce(TensorView x, ReduceOp op) override {
    auto mirror = make_mirror();
    const TensorView view = mirror->up(x);
    return start(std::move(mirror), inner_.all_reduce(view, op));
  }
  Work broadcast(TensorView x, int root) override {
    auto mirror = make_mirror();
    const TensorView view = mirror->up(x);
    return start(std::move(mirror), inner_.broadcast(view, root));
  }
  Work exchange(std::vector<Exchange> messages) override {
    auto mirror = make_mirror();
    for (Exchange& message : messages) {
      message.send = mirror->up(message.send);
      message.receive = mirror->up(message.receive);
    }
    return start(std::move(mirror), inner_.exchange(std::move(messages)));
  }
  void barrier() override { inner_.barrier(); }
  std::unique_ptr<Communicator> subgroup(const std::vector<int>& members,
                                         std::string axis) override {
    auto group = inner_.subgroup(members, std::move(axis));
    Communicator& inner = *group;
    return std::make_unique<HostFace>(inner, std::move(group), device_, queue_);
  }

  void progress() override { inner_.progress(); }
  [[nodiscard]] Ledger& ledger() override { return inner_.ledger(); }
  [[nodiscard]] const std::map<std::string, double>& wait_seconds() const override {
    return inner_.wait_seconds();
  }
  [[nodiscard]] double wait_cpu_seconds() const override { return inner_.wait_cpu_seconds(); }
  void set_slowdown(double factor) override { inner_.set_slowdown(factor); }
  void set_watchdog(double seconds) override { inner_.set_watchdog(seconds); }
  void set_wait_limit(const std::string& axis, double seconds) override {
    inner_.set_wait_limit(axis, seconds);
  }

 private:
  [[nodiscard]] std::unique_ptr<Mirror> make_mirror() const {
    return std::make_unique<Mirror>(device_, queue_);
  }
  // By turns the two ways of waiting: by the queue and by the host.
  Work start(std::unique_ptr<Mirror> mirror, Work work) {
    host_waits_ = !host_waits_;
    return Work(std::make_unique<MirroredWork>(std::move(mirror), std::move(work), host_waits_));
  }

  std::unique_ptr<Communicator> owned_;
  Communicator& inner_;
  Device& device_;
  Queue& queue_;
  bool host_waits_ = false;
};

}  // namespace

std::unique_ptr<Communicator> make_host_face(Communicator& inner, Device& device, Queue& queue) {
  return std::make_unique<HostFace>(inner, nullptr, device, queue);
}

}  // namespace t3d::test
