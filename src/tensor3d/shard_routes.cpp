#include "tensor3d/shard_routes.hpp"

#include "tensor3d/one_bucket.hpp"

namespace t3d {
namespace {

template <class Visit>
void for_each_piece(const ShardBoxes& from, const ShardBoxes& to, const std::vector<Strip>& strips,
                    Visit&& visit) {
  for (const Strip& strip : strips)
    for (const RoutePiece& piece : route(from[strip.which], to[strip.which], strip.box))
      visit(piece);
}

}  // namespace

ShardRoutes::Side::Side(const Plan& plan_, int rank)
    : plan(plan_),
      mesh(plan_.mesh()),
      active(plan_.active()),
      replica(static_cast<std::size_t>(plan_.ranks), -1),
      classes(cut_classes(plan_)) {
  for (std::size_t number = 0; number < active.size(); ++number) {
    const Coord coord = mesh.coord_of(static_cast<int>(number));
    replica[static_cast<std::size_t>(active[number])] = coord.d;
    if (active[number] == rank) here = coord;
  }
}

BucketTable ShardRoutes::Side::table(std::size_t bucket) const {
  const ReplicaPlan& own = plan.replica(here->d);
  const auto& [p, q, r] = own.cuboid;
  return parameter_bucket(ModelShape(plan.model, own), MeshShape(1, p, q, r), *here, bucket);
}

ShardRoutes::ShardRoutes(const Plan& before, const Plan& after, int rank)
    : rank_(rank), from_(before, rank), to_(after, rank) {}

index_t ShardRoutes::source_replica(int receiver) const {
  const index_t own = from_.replica[static_cast<std::size_t>(receiver)];
  return own >= 0 ? own : receiver % std::ssize(from_.plan.replicas);
}

ShardRoutes::Tables& ShardRoutes::tables(std::size_t bucket) {
  const std::size_t like = bucket_cut_like(to_.plan.model, bucket);
  const auto [found, fresh] = tables_.try_emplace(like);
  Tables& tables = found->second;
  if (!fresh) return tables;
  if (from_.here) tables.own_from = boxes_of(from_.table(like));
  if (to_.here) tables.own_to = boxes_of(to_.table(like));
  return tables;
}

void ShardRoutes::for_each_received(std::size_t bucket, const std::vector<Strip>& strips,
                                    const Holders& holders, const Visit& visit) {
  if (!receives(holders.to)) return;
  Tables& all = tables(bucket);
  const index_t source = holders.from >= 0 ? holders.from : source_replica(rank_);
  const std::size_t cut = from_.classes.of[static_cast<std::size_t>(source)];
  const auto [found, fresh] = all.senders.try_emplace(cut);
  if (fresh)
    found->second = meeting_shards(from_.plan.model, from_.plan.replica(source),
                                   bucket_cut_like(to_.plan.model, bucket), all.own_to);
  for (const MeetingShard& shard : found->second) {
    const int sender = from_.rank_at({source, shard.coord.i, shard.coord.j, shard.coord.k});
    for_each_piece(shard.boxes, all.own_to, strips,
                   [&](const RoutePiece& piece) { visit(sender, piece); });
  }
}

void ShardRoutes::for_each_sent(std::size_t bucket, const std::vector<Strip>& strips,
                                const Holders& holders, const Visit& visit) {
  if (!from_.here || (holders.from >= 0 && holders.from != from_.here->d)) return;
  Tables& all = tables(bucket);
  for (std::size_t cut = 0; cut < to_.classes.replicas.size(); ++cut) {
    const std::vector<index_t>& replicas = to_.classes.replicas[cut];
    const auto [found, fresh] = all.receivers.try_emplace(cut);
    if (fresh)
      found->second = meeting_shards(to_.plan.model, to_.plan.replica(replicas.front()),
                                     bucket_cut_like(to_.plan.model, bucket), all.own_from);
    for (const MeetingShard& shard : found->second)
      for (const index_t replica : replicas) {
        if (holders.to >= 0 && replica != holders.to) continue;
        const int receiver = to_.rank_at({replica, shard.coord.i, shard.coord.j, shard.coord.k});
        if (holders.from < 0 && source_replica(receiver) != from_.here->d) continue;
        for_each_piece(all.own_from, shard.boxes, strips,
                       [&](const RoutePiece& piece) { visit(receiver, piece); });
      }
  }
}

index_t ShardRoutes::count_to(std::size_t bucket) const { return to_.table(bucket).shard_count(); }

index_t ShardRoutes::table_bytes() const {
  index_t bytes = 0;
  for (const Side* side : {&from_, &to_})
    bytes += std::ssize(side->active) * index_t{sizeof(int)} * 3 +  // and the mesh's two tables
             std::ssize(side->replica) * index_t{sizeof(index_t)} +
             std::ssize(side->classes.of) * index_t{2 * sizeof(std::size_t)};
  for (const auto& [bucket, tables] : tables_) {
    bytes += bytes_of(tables.own_from) + bytes_of(tables.own_to);
    for (const auto* peers : {&tables.senders, &tables.receivers})
      for (const auto& [cut, shards] : *peers)
        for (const MeetingShard& shard : shards)
          bytes += index_t{sizeof(MeetingShard)} + bytes_of(shard.boxes);
  }
  return bytes;
}

}  // namespace t3d
