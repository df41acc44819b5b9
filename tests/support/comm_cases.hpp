// Every verb against its definition, on any group: the same cases run over MPI, over threads and
// alone. Failures throw (Catch2's assertions are not for threads); each returns a digest of its
// results, which must be the same on every back end.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.hpp"

namespace t3d::test {

/// How the parts of the ranks compare.
enum class Shares { equal, uneven, zeros, empty, large };
inline constexpr Shares kAllShares[] = {Shares::equal, Shares::uneven, Shares::zeros, Shares::empty,
                                        Shares::large};
[[nodiscard]] std::vector<index_t> counts_of(Shares shares, int ranks);

using Digest = std::uint64_t;
Digest check_all_gather(Communicator& group, DType type, Shares shares, bool in_place);
Digest check_reduce_scatter(Communicator& group, DType type, DType part_type, Shares shares,
                            bool in_place);
Digest check_all_reduce(Communicator& group, DType type, ReduceOp op, index_t count);
Digest check_broadcast(Communicator& group, DType type, index_t count, int root);
/// Messages of different lengths between all pairs, two with the next rank, one to oneself.
Digest check_exchange(Communicator& group, DType type);

/// All of the above in all variants; one digest.
Digest check_every_verb(Communicator& group);

/// What differs in large groups: small sizes, and one of each kind of large ones.
Digest check_small_verbs(Communicator& group);

/// Many operations in flight at once on two groups and on the world, finished in another order.
void check_many_in_flight(Communicator& world);

/// Groups of even and odd ranks, reversed order, single ranks; groups of groups; again and again.
void check_subgroups(Communicator& world);

}  // namespace t3d::test
