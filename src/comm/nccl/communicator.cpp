#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "comm/collectives.hpp"
#include "comm/cost.hpp"
#include "comm/group.hpp"
#include "comm/nccl/engine.hpp"
#include "comm/nccl/nccl.hpp"
#include "comm/nccl/verbs.hpp"
#include "device/ranges.hpp"

namespace t3d {
namespace nccl {
namespace {

class NcclWork final : public Work::Impl {
 public:
  NcclWork(std::shared_ptr<Engine> engine, FlightPtr flight, std::vector<Tensor> scratch)
      : engine_(std::move(engine)), flight_(std::move(flight)), scratch_(std::move(scratch)) {}
  bool test() override {
    engine_->progress();
    engine_->check();
    return engine_->landed(*flight_);
  }
  void wait() override { engine_->wait(*flight_); }
  void order(Queue& queue) override {
    engine_->check();
    // The scratch memory goes back: whoever gets it uses it on the compute queue, or on a group's
    // stream behind that.
    cuda::check(cudaStreamWaitEvent(cuda::stream_of(queue), flight_->event.get(), 0),
                "waiting for an event");
    if (&queue != &engine_->compute())
      cuda::check(cudaStreamWaitEvent(engine_->compute().stream(), flight_->event.get(), 0),
                  "waiting for an event");
  }

 private:
  std::shared_ptr<Engine> engine_;
  FlightPtr flight_;
  std::vector<Tensor> scratch_;
};

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(std::shared_ptr<Engine> engine, Communicator& host,
                   std::unique_ptr<Communicator> owned, ncclComm_t comm)
      : engine_(std::move(engine)), owned_(std::move(owned)), host_(host), handle_(comm) {
    engine_->add(handle_);
    if (size() > 1) stream_ = std::make_unique<cuda::CudaQueue>();
  }
  ~NcclCommunicator() override { engine_->remove(handle_); }
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  [[nodiscard]] int rank() const override { return host_.rank(); }
  [[nodiscard]] int size() const override { return host_.size(); }
  [[nodiscard]] const std::string& axis() const override { return host_.axis(); }

  [[nodiscard]] Work all_gather(ConstTensorView part, TensorView whole,
                                std::span<const index_t> counts) override {
    check_all_gather(*this, part, whole, counts);
    return submit(Verb::all_gather, all_gather_traffic(counts, rank(), whole.dtype),
                  [&](const Lane& lane) { return nccl::all_gather(lane, part, whole, counts); });
  }
  [[nodiscard]] Work reduce_scatter(ConstTensorView whole, TensorView part,
                                    std::span<const index_t> counts) override {
    check_reduce_scatter(*this, whole, part, counts);
    return submit(Verb::reduce_scatter, reduce_scatter_traffic(counts, rank(), whole.dtype),
                  [&](const Lane& lane) {
                    return nccl::reduce_scatter(lane, ReduceOp::sum, whole, part, counts);
                  });
  }
  [[nodiscard]] Work all_reduce(TensorView x, ReduceOp op) override {
    check_all_reduce(x, op);
    return submit(Verb::all_reduce, all_reduce_traffic(x.count(), size(), rank(), x.dtype),
                  [&](const Lane& lane) { return nccl::all_reduce(lane, x, op); });
  }
  [[nodiscard]] Work broadcast(TensorView x, int root) override {
    check_broadcast(*this, x, root);
    return submit(Verb::broadcast, broadcast_traffic(x.count(), size(), rank(), root, x.dtype),
                  [&](const Lane& lane) {
                    nccl::broadcast(lane, x, root);
                    return Tensor();
                  });
  }
  [[nodiscard]] Work exchange(std::vector<Exchange> messages) override {
    check_exchange(*this, messages);
    const std::vector<Exchange> own = messages_to_self(rank(), messages);
    return submit(Verb::exchange, exchange_traffic(*this, messages), [&](const Lane& lane) {
      nccl::exchange(lane, messages, own);
      return Tensor();
    });
  }
  void barrier() override {
    drain(Verb::barrier);
    host_.barrier();
  }
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

 private:
  // A rank alone needs no other stream: its verbs are copies in the order of the compute queue.
  [[nodiscard]] cuda::CudaQueue& lane_queue() {
    return stream_ != nullptr ? *stream_ : engine_->compute();
  }
  template <class Verbs>
  [[nodiscard]] Work submit(Verb verb, const Traffic& traffic, Verbs&& verbs) {
    const NamedRange range(engine_->device().ranges(), name_of(verb), axis());
    const index_t number = engine_->begin(verb, axis(), traffic);
    if (stream_ != nullptr) stream_->wait_for(engine_->compute().stream());
    const TracedVerb traced = trace(verb, traffic.bytes);
    const Lane lane{handle_.get(),     rank(), size(), lane_queue(), engine_->device(),
                    engine_->options()};
    std::vector<Tensor> scratch;
    if constexpr (std::is_same_v<decltype(verbs(lane)), Tensor>)
      scratch.push_back(verbs(lane));
    else
      scratch = verbs(lane);
    FlightPtr flight =
        engine_->submitted(verb, axis(), traffic.bytes, number, lane_queue().stream(), traced);
    return Work(std::make_unique<NcclWork>(engine_, std::move(flight), std::move(scratch)));
  }
  // A rank alone has no stream whose times could be told.
  [[nodiscard]] TracedVerb trace(Verb verb, index_t bytes) {
    Tracer* const tracer = Tracer::current();
    if (tracer == nullptr || stream_ == nullptr || engine_->recording()) return {};
    const auto& members = dynamic_cast<GroupCommunicator&>(host_).members();
    const int group = tracer->number_of(traced_group_, axis(), members);
    return engine_->trace(tracer->submit(group, name_of(verb).data(), bytes), stream_->stream());
  }
  /// Until all that this group and the compute queue were given is done.
  void drain(Verb verb) {
    if (stream_ != nullptr) stream_->wait_for(engine_->compute().stream());
    engine_->drain(verb, axis(), lane_queue().stream());
  }

  std::shared_ptr<Engine> engine_;
  std::unique_ptr<Communicator> owned_;  // what host_ is, where nobody else owns it
  Communicator& host_;                   // the same group over host memory
  std::unique_ptr<cuda::CudaQueue> stream_;
  Handle handle_;  // goes before its stream
  TracedGroup traced_group_;
};

std::unique_ptr<Communicator> NcclCommunicator::subgroup(const std::vector<int>& members,
                                                         std::string axis) {
  // NCCL may wait for ever for a missing member; the host group says who it is.
  auto host = host_.subgroup(members, std::move(axis));
  ncclComm_t comm = nullptr;
  if (size() > 1) {
    drain(Verb::barrier);  // a communicator is split when it is idle
    const int lowest = *std::min_element(members.begin(), members.end());
    const int color = members.size() > 1 ? lowest : NCCL_SPLIT_NOCOLOR;
    nccl::check(ncclCommSplit(handle_.get(), color, host->rank(), &comm, nullptr), "ncclCommSplit");
  }
  Communicator& group = *host;
  return std::make_unique<NcclCommunicator>(engine_, group, std::move(host), comm);
}

// Rank 0 makes the id that all ranks join with; where it cannot, all ranks throw.
ncclUniqueId agree_on_id(Communicator& host_group) {
  struct Invitation {
    std::int32_t result = ncclSuccess;
    ncclUniqueId id{};
  };
  static_assert(sizeof(Invitation) % sizeof(std::int32_t) == 0);
  Invitation invitation;
  if (host_group.rank() == 0) invitation.result = ncclGetUniqueId(&invitation.id);
  constexpr auto kWords = static_cast<index_t>(sizeof(Invitation) / sizeof(std::int32_t));
  host_group.broadcast({&invitation, DType::i32, 1, kWords}, 0).wait_host();
  if (invitation.result != ncclSuccess)
    throw_error(ExitCode::unavailable, "NCCL does not start: {}: {}",
                ncclGetErrorString(static_cast<ncclResult_t>(invitation.result)),
                ncclGetLastError(nullptr));
  return invitation.id;
}

ncclComm_t connect(Communicator& host_group, const NcclOptions& options) {
  if (host_group.size() == 1) return nullptr;
  static std::once_flag once;  // ranks of tests are threads
  std::call_once(once, [] { setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0); });
  const ncclUniqueId id = agree_on_id(host_group);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  if (options.max_blocks > 0) config.maxCTAs = options.max_blocks;
  ncclComm_t comm = nullptr;
  const ncclResult_t result =
      ncclCommInitRankConfig(&comm, host_group.size(), id, host_group.rank(), &config);
  if (result != ncclSuccess)
    throw_error(ExitCode::unavailable,
                "NCCL does not connect the GPUs: {}: {}; mesh.transport = \"staged\" does without",
                ncclGetErrorString(result), ncclGetLastError(nullptr));
  return comm;
}

}  // namespace
}  // namespace nccl

std::unique_ptr<Communicator> make_nccl_communicator(Communicator& host_world, Device& device,
                                                     Queue& queue, const NcclOptions& options,
                                                     std::unique_ptr<Communicator> host_group) {
  T3D_CHECK(options.reduction == "ordered" || options.reduction == "ring", "reduction \"{}\"",
            options.reduction);
  auto engine = std::make_shared<nccl::Engine>(host_world, device, queue, options);
  Communicator& group = host_group != nullptr ? *host_group : host_world;
  const ncclComm_t comm = nccl::connect(group, options);
  return std::make_unique<nccl::NcclCommunicator>(std::move(engine), group, std::move(host_group),
                                                  comm);
}

}  // namespace t3d
