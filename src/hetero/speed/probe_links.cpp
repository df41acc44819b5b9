#include "hetero/speed/probe_links.hpp"

#include <algorithm>
#include <optional>

#include "comm/agree.hpp"
#include "hetero/speed/group_timer.hpp"
#include "hetero/speed/sample_statistics.hpp"

namespace t3d {
namespace {

constexpr std::array<Group, kProbedGroups> kGroups{Group::i, Group::j, Group::k, Group::d,
                                                   Group::world};
constexpr index_t kSmallest = index_t{4} << 10, kLargest = index_t{16} << 20, kGrowth = 4;
constexpr int kSamples = 7;

/// Of one piece, where so many ranks gather theirs in a buffer of so many bytes.
index_t largest_piece(index_t bytes, index_t ranks) {
  index_t piece = kSmallest;
  while (piece * kGrowth <= std::min(kLargest, bytes / ranks)) piece *= kGrowth;
  return piece;
}

/// Memory for every group in turn.
struct LinkBuffers {
  Tensor whole, sum, number;
  LinkBuffers(Device& device, index_t bytes)
      : whole(device, DType::f32, 1, bytes / size_of(DType::f32), MemoryKind::workspace),
        sum(device, DType::f32, 1, std::min(kLargest, bytes) / size_of(DType::f32),
            MemoryKind::workspace),
        number(device, DType::f64, 1, 1, MemoryKind::workspace) {}
};

/// Times of one group. Its members take every decision from the same numbers.
class GroupProbe {
 public:
  GroupProbe(const ProbeMachine& machine, Communicator& group, const LinkBuffers& buffers)
      : machine_(machine),
        group_(group),
        buffers_(buffers),
        timer_(machine, group, buffers.number) {}

  [[nodiscard]] LinkSpeed measure(const LinkBudget& budget) {
    const index_t most = largest_piece(budget.bytes, group_.size());
    std::vector<LinePoint> points;
    double spent = 0, next = 0;
    for (index_t bytes = kSmallest; bytes <= most; bytes *= kGrowth) {
      // Without a slope the bytes would cost nothing: larger ones stand out from the noise.
      if (spent + next > budget.seconds && points.size() >= 2 && theil_sen_slope(points) > 0) break;
      const double message = message_seconds(bytes);
      points.push_back({static_cast<double>(bytes), message});
      const double sample = 2 * message * (group_.size() - 1);
      spent += (kSamples + 1) * sample;
      next = kGrowth * (kSamples + 1) * sample;
    }
    const double beta = std::max(0.0, theil_sen_slope(points));
    return {std::max(0.0, points.front().y - beta * points.front().x), beta};
  }

 private:
  /// Of one message among those of a gathering and of a sum, which a step has about as many of; for
  /// the slowest member.
  [[nodiscard]] double message_seconds(index_t bytes) {
    const index_t count = bytes / size_of(DType::f32), ranks = group_.size();
    const std::vector<index_t> counts(static_cast<std::size_t>(ranks), count);
    const TensorView whole{buffers_.whole.view().data, DType::f32, ranks, count};
    const TensorView own = whole.row_range(group_.rank(), 1);
    const TensorView sum{buffers_.sum.view().data, DType::f32, 1, count};
    machine_.ops.fill(machine_.queue, whole, 1);
    const auto both = [&] {
      group_.all_gather(own, whole, counts).wait(machine_.queue);
      group_.reduce_scatter(whole, sum, counts).wait(machine_.queue);
    };
    return timer_.seconds(both, kSamples).seconds / (2.0 * (group_.size() - 1));
  }

  const ProbeMachine& machine_;
  Communicator& group_;
  const LinkBuffers& buffers_;
  GroupTimer timer_;
};

std::vector<int> members_of(const Mesh& mesh, Group group) {
  const MeshShape& shape = mesh.shape();
  const int own = shape.rank_of(mesh.coord());
  switch (group) {
    case Group::i: return shape.group(own, {Axis::i});
    case Group::j: return shape.group(own, {Axis::j});
    case Group::k: return shape.group(own, {Axis::k});
    case Group::d: return shape.alike() ? shape.group(own, {Axis::d}) : std::vector<int>{own};
    default: break;
  }
  std::vector<int> all{own};
  for (int rank = 0; !shape.alike() && rank < shape.ranks(); ++rank)
    if (rank != own) all.push_back(rank);
  return all;
}

LinkSpeed median_link(const std::vector<LinkSpeed>& links) {
  std::vector<double> alphas, betas;
  for (const LinkSpeed& link : links) {
    alphas.push_back(link.alpha_seconds);
    betas.push_back(link.beta_seconds_per_byte);
  }
  return {median_of(std::move(alphas)), median_of(std::move(betas))};
}

}  // namespace

GroupLinks probe_links(const ProbeMachine& machine, const Mesh& mesh, std::span<const int> nodes,
                       const LinkBudget& budget, Communicator& control) {
  GroupLinks links;
  std::array<std::vector<int>, kProbedGroups> members;
  index_t largest = 0;
  for (std::size_t at = 0; at < kProbedGroups; ++at) {
    members[at] = members_of(mesh, kGroups[at]);
    const index_t ranks = std::ssize(members[at]);
    if (ranks > 1) largest = std::max(largest, ranks * largest_piece(budget.bytes, ranks));
  }
  std::optional<LinkBuffers> buffers;
  std::optional<Error> fault;
  attempt(fault, [&] { buffers.emplace(machine.device, largest); });
  agree(control, fault);
  const LinkBudget each{budget.seconds / kProbedGroups, budget.bytes};
  for (std::size_t at = 0; at < kProbedGroups; ++at) {
    control.barrier();
    if (members[at].size() == 1) continue;
    const auto node = [&](int rank) { return nodes[static_cast<std::size_t>(rank)]; };
    links[at].between = std::any_of(members[at].begin(), members[at].end(), [&](int rank) {
      return node(rank) != node(members[at].front());
    });
    links[at].measured = true;
    links[at].link = GroupProbe(machine, mesh.group(kGroups[at]), *buffers).measure(each);
  }
  buffers.reset();
  machine.device.trim();
  machine.device.restart_peaks();
  return links;
}

void summarise_links(std::span<const GroupLinks> ranks, Speeds& speeds) {
  std::vector<LinkSpeed> inside, between;
  for (const GroupLinks& links : ranks)
    for (const GroupLink& group : links)
      if (group.measured) (group.between ? between : inside).push_back(group.link);
  speeds.inside = median_link(inside.empty() ? between : inside);
  speeds.between = median_link(between.empty() ? inside : between);
}

}  // namespace t3d
