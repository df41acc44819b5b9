// Another division of the batch under the same cut of the parameters: sequences per slab, over all
// replicas. Nothing that a rank holds at rest changes. Pure arithmetic, the same on every rank.
#pragma once
#include <span>
#include <vector>

#include "core/plan.hpp"

namespace t3d {

/// Micro-batches of a replica's leaves: `sequences` in `leaves` even parts, each in passes of at
/// most `micro` (0 = all at once), as even as can be.
[[nodiscard]] std::vector<std::vector<index_t>> even_leaves(index_t sequences, index_t leaves,
                                                            index_t micro);

/// The plan with `sequences[s]` of a step's sequences on slab s (replica after replica, as
/// slab_sequences() counts them); their sum is the plan's. `micro`: most sequences of a
/// micro-batch, 0 = all at once. A micro-batch is cut over i in proportion to the slabs' sequences,
/// so that the largest slab is as small as whole sequences allow.
///
/// The leaves of Adasum keep their number in each replica where a replica has one leaf. Where it
/// has several, whole leaves move: every leaf keeps its samples, and so the aggregate its value.
/// sequences of a replica must then be a multiple of leaf_unit().
[[nodiscard]] Plan with_slab_sequences(const Plan& plan, std::span<const index_t> sequences,
                                       index_t micro);

/// Replicas have several leaves (Adasum): whole ones move between them.
[[nodiscard]] bool moves_whole_leaves(const Plan& plan);

/// Sequences that move between replicas at once: those of a leaf where leaves stay whole, else 1.
/// 0 where none can move: leaves differ in size, or each has an optimizer of its own, whose state
/// is where the leaf is.
[[nodiscard]] index_t leaf_unit(const Plan& plan);

}  // namespace t3d
