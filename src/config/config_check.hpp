// What one key alone cannot tell: rules between keys, and between the input and the ranks.
#pragma once
#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "config/config_errors.hpp"

namespace t3d {

/// Whence each key's value came: "table.key" -> place. Absent = default or computed.
using Origins = std::map<std::string, Where>;

/// The part of them that is of [model].
void fill_model_defaults(ModelConfig& model);

/// Fills what other keys determine: kv_heads, ffn, run.name, run.dir, checkpoint.dir.
void fill_computed_defaults(Config& config, const std::string& file_name);

/// Rules between keys. Those that involve a key of `faulty` are passed over: one slip, one fault.
[[nodiscard]] std::vector<Fault> cross_faults(const Config& config, const Origins& origins,
                                              const std::string& file_name,
                                              const std::set<std::string>& faulty);

/// Names and paths of the run that are not one line of UTF-8: its checkpoints could not name them.
/// The first of them, since one is computed from another; none if it is in `faulty`.
[[nodiscard]] std::vector<Fault> path_faults(const Config& config, const Origins& origins,
                                             const std::string& file_name,
                                             const std::set<std::string>& faulty);

/// Steps of the whole run by run.steps and run.tokens, whichever is reached first.
[[nodiscard]] index_t planned_steps(const Config& config);

/// What of the input is not read as it is written, or of no use for `ranks` ranks.
[[nodiscard]] std::vector<std::string> unused_input(const Config& config, int ranks);

/// Throws ConfigErrors unless replicas*p*q*r (or the sum over mesh.cuboids) == ranks, mesh.place is
/// a permutation, [emulate] fits the ranks, and a hetero.file is what was asked for. With cuboid =
/// "auto", fills mesh.cuboid first (cuboid_auto stays true), and where replicas does not divide the
/// ranks those that are left over are idle.
void check_against_ranks(Config& config, int ranks, const Origins& origins = {});

/// The shape [p, q, r] of `ranks` ranks that sends the fewest elements per block,
/// V = 12 h^2 (p-1) + 4 T h (q-1) + 12 T h (r-1) with T tokens per micro-batch; of equals, smaller
/// r, then smaller q. Shapes with p > sequences of a micro-batch or q > kv_heads leave ranks empty
/// and are taken only when nothing else is left. Nothing has to divide.
[[nodiscard]] std::array<index_t, 3> choose_cuboid(const Config& config, index_t ranks);

}  // namespace t3d
