#include "comm/group.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "comm/reduce.hpp"

namespace t3d {
namespace {

// Tag = group number, then the operation's number in its group (32768 may be in flight at once).
constexpr int kSequenceBits = 15;
static_assert(kSequenceBits + 8 == Transport::kTagBits && Engine::kContexts == 1U << 8);

}  // namespace

void check_parts(const Communicator& group, ConstTensorView part, ConstTensorView whole,
                 std::span<const index_t> counts) {
  T3D_CHECK(counts.size() == static_cast<std::size_t>(group.size()), "{} counts for {} ranks",
            counts.size(), group.size());
  const auto total = std::accumulate(counts.begin(), counts.end(), index_t{0});
  const index_t own = counts[static_cast<std::size_t>(group.rank())];
  T3D_CHECK(std::all_of(counts.begin(), counts.end(), [](index_t count) { return count >= 0; }),
            "a negative count");
  T3D_CHECK(whole.count() == total, "the whole has {} elements, the parts {}", whole.count(),
            total);
  T3D_CHECK(part.count() == own, "the part has {} elements, its count is {}", part.count(), own);
  T3D_CHECK(part.contiguous() && whole.contiguous(), "collectives need contiguous memory");
}

void check_all_gather(const Communicator& group, ConstTensorView part, ConstTensorView whole,
                      std::span<const index_t> counts) {
  check_parts(group, part, whole, counts);
  T3D_CHECK(part.dtype == whole.dtype, "{} gathered into {}", name_of(part.dtype),
            name_of(whole.dtype));
}

void check_reduce_scatter(const Communicator& group, ConstTensorView whole, ConstTensorView part,
                          std::span<const index_t> counts) {
  check_parts(group, part, whole, counts);
  check_reducible(ReduceOp::sum, whole.dtype, part.dtype);
}

void check_all_reduce(ConstTensorView x, ReduceOp op) {
  T3D_CHECK(x.contiguous(), "all_reduce needs contiguous memory");
  check_reducible(op, x.dtype, x.dtype);
}

void check_broadcast(const Communicator& group, ConstTensorView x, int root) {
  T3D_CHECK(x.contiguous(), "broadcast needs contiguous memory");
  T3D_CHECK(root >= 0 && root < group.size(), "root {} of {} ranks", root, group.size());
}

void check_exchange(const Communicator& group, std::span<const Exchange> messages) {
  for (const Exchange& message : messages) {
    T3D_CHECK(message.peer >= 0 && message.peer < group.size(), "peer {} of {} ranks", message.peer,
              group.size());
    T3D_CHECK(message.send.contiguous() && message.receive.contiguous(),
              "exchange needs contiguous memory");
  }
}

Traffic exchange_traffic(const Communicator& group, std::span<const Exchange> messages) {
  Traffic traffic;
  std::set<int> peers;
  for (const Exchange& message : messages) {
    if (message.peer == group.rank() || message.send.empty()) continue;
    traffic.bytes += message.send.bytes();
    peers.insert(message.peer);
  }
  traffic.messages = std::ssize(peers);
  return traffic;
}

int position_in(const Communicator& group, const std::vector<int>& members) {
  const auto own = std::find(members.begin(), members.end(), group.rank());
  T3D_CHECK(own != members.end(), "rank {} is not in the subgroup that it makes", group.rank());
  for (const int member : members)
    T3D_CHECK(member >= 0 && member < group.size(), "member {} of a group of {}", member,
              group.size());
  return static_cast<int>(own - members.begin());
}

std::unique_ptr<Communicator> GroupCommunicator::make_world(std::unique_ptr<Transport> transport) {
  std::vector<int> members(static_cast<std::size_t>(transport->size()));
  std::iota(members.begin(), members.end(), 0);
  const int rank = transport->rank();
  auto engine = std::make_shared<Engine>(std::move(transport));
  engine->contexts().set(0);
  return std::make_unique<GroupCommunicator>(std::move(engine), std::move(members), rank, "world",
                                             0);
}

GroupCommunicator::GroupCommunicator(std::shared_ptr<Engine> engine, std::vector<int> members,
                                     int rank, std::string axis, int context)
    : engine_(std::move(engine)),
      members_(std::move(members)),
      rank_(rank),
      axis_(std::move(axis)),
      context_(context) {
  if (context_ < 0) return;
  engine_->adopt_limit(context_, axis_);
  engine_->adopt_members(context_, members_);
}

GroupCommunicator::~GroupCommunicator() {
  if (context_ >= 0) engine_->contexts().reset(static_cast<std::size_t>(context_));
}

int GroupCommunicator::next_tag() {
  if (context_ < 0) return 0;
  const int tag = (context_ << kSequenceBits) | sequence_;
  sequence_ = (sequence_ + 1) % (1 << kSequenceBits);
  return tag;
}

Work GroupCommunicator::all_gather(ConstTensorView part, TensorView whole,
                                   std::span<const index_t> counts) {
  check_all_gather(*this, part, whole, counts);
  return engine_->start(make_all_gather(party(next_tag()), part, whole, counts), Verb::all_gather,
                        axis_, context_);
}

Work GroupCommunicator::reduce_scatter(ConstTensorView whole, TensorView part,
                                       std::span<const index_t> counts) {
  check_reduce_scatter(*this, whole, part, counts);
  return engine_->start(make_reduce_scatter(party(next_tag()), ReduceOp::sum, whole, part, counts),
                        Verb::reduce_scatter, axis_, context_);
}

Work GroupCommunicator::all_reduce(TensorView x, ReduceOp op) {
  check_all_reduce(x, op);
  const int tag = next_tag();
  return engine_->start(make_all_reduce(party(tag), next_tag(), x, op), Verb::all_reduce, axis_,
                        context_);
}

Work GroupCommunicator::broadcast(TensorView x, int root) {
  check_broadcast(*this, x, root);
  return engine_->start(make_broadcast(party(next_tag()), x, root), Verb::broadcast, axis_,
                        context_);
}

Work GroupCommunicator::exchange(std::vector<Exchange> messages) {
  check_exchange(*this, messages);
  return engine_->start(make_exchange(party(next_tag()), messages), Verb::exchange, axis_,
                        context_);
}

void GroupCommunicator::barrier() {
  engine_->start(make_barrier(party(next_tag())), Verb::barrier, axis_, context_).wait_host();
}

int GroupCommunicator::agree_on_context(const std::vector<int>& members) {
  constexpr index_t kWords = Engine::kContexts / 32;
  std::array<std::int32_t, kWords> used{};
  for (std::size_t at = 0; at < Engine::kContexts; ++at)
    if (engine_->contexts().test(at))
      used[at / 32] |= static_cast<std::int32_t>(std::uint32_t{1} << (at % 32));

  // Between the members only, in the new order, under this group's next tag: the lists of different
  // ranks are disjoint, so nobody else can take these messages.
  std::vector<int> world_ranks;
  for (const int member : members)
    world_ranks.push_back(members_[static_cast<std::size_t>(member)]);
  const Party agreement{*engine_, world_ranks, position_in(*this, members), next_tag()};
  engine_
      ->start(make_all_reduce(agreement, 0, {used.data(), DType::i32, 1, kWords}, ReduceOp::bit_or),
              Verb::all_reduce, "subgroup of " + axis_, context_, false)
      .wait_host();

  for (std::size_t at = 0; at < Engine::kContexts; ++at)
    if ((static_cast<std::uint32_t>(used[at / 32]) >> (at % 32) & 1U) == 0)
      return static_cast<int>(at);
  throw_error(ExitCode::internal, "more than {} groups at once", Engine::kContexts);
}

std::unique_ptr<Communicator> GroupCommunicator::subgroup(const std::vector<int>& members,
                                                          std::string axis) {
  const int position = position_in(*this, members);
  int context = -1;
  if (members.size() > 1) {
    context = agree_on_context(members);
    engine_->contexts().set(static_cast<std::size_t>(context));
  } else {
    next_tag();
  }
  std::vector<int> world_ranks;
  for (const int member : members)
    world_ranks.push_back(members_[static_cast<std::size_t>(member)]);
  return std::make_unique<GroupCommunicator>(engine_, std::move(world_ranks), position,
                                             std::move(axis), context);
}

}  // namespace t3d
