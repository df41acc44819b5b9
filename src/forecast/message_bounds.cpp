#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "comm/cost.hpp"
#include "forecast/candidate_bounds.hpp"
#include "forecast/cluster/sampled_fit.hpp"
#include "tensor3d/model_shape.hpp"

namespace t3d {
namespace {

constexpr double kMargin = 0.8;     // a product of a fit and a correction may be below both
constexpr double kLinearCalls = 4;  // gathers, and as many sums, of a block over j or over k
constexpr double kUneven = 0.95;    // parts are even but for some units

double rounds_at_least(double peers) { return std::ceil(std::log2(peers + 1)); }

/// Micro-batches of a replica in a step, at least.
double micro_batches(const JobCandidate& candidate, const PlanRecipe& recipe) {
  const index_t share = recipe.sequences / candidate.replicas,
                leaf = std::max<index_t>(1, share / recipe.leaves);
  const index_t each = candidate.micro > 0 ? (leaf + candidate.micro - 1) / candidate.micro : 1;
  return static_cast<double>(std::min(share, recipe.leaves) * each);
}

}  // namespace

double MessageBounds::Line::seconds(double messages, double bytes, double groups) const {
  const double shared = nics > 0 ? std::max(1.0, groups / nics) : 1;
  const double start = alpha * messages, rest = (beta * shared + beta_group * (groups - 1)) * bytes;
  return corrected ? std::max(start, rest) : start + rest;
}

std::vector<MessageBounds::Line> MessageBounds::lines_of(const Level& level) {
  // As LevelEstimator: verbs without a table follow the level.
  Line own{level.alpha_seconds, level.beta_seconds_per_byte, 0,
           level.nodes == 1 ? 0 : static_cast<double>(level.nics_per_node), false};
  if (level.groups_together > 1) {
    own.nics = 0;
    own.beta_group =
        std::max(0.0, level.beta_together_seconds_per_byte - level.beta_seconds_per_byte) /
        static_cast<double>(level.groups_together - 1);
  }
  std::vector<Line> lines{own};
  for (const CollectiveTable& table : level.collectives) {
    const auto counts = [&](std::span<const double> shape) {
      return term_counts(table.verb, shape);
    };
    const Fit fit = !table.fit.terms.empty()
                        ? table.fit
                        : SampledFit::of_samples(table.samples, collective_form(), counts);
    Line line{fit.terms[0], fit.terms[1], fit.terms[2], 0, !table.samples.empty()};
    for (const Sample& sample : table.samples) {
      const TermCounts units = counts(std::span(sample.shape).first(3));
      if (units[0] > 0) line.alpha = std::min(line.alpha, sample.seconds / units[0]);
      if (units[1] > 0) line.beta = std::min(line.beta, sample.seconds / units[1]);
    }
    if (line.corrected) line = {kMargin * line.alpha, kMargin * line.beta, 0, 0, true};
    lines.push_back(line);
  }
  return lines;
}

MessageBounds::MessageBounds(const ModelConfig& model, const JobNodes& nodes,
                             const Cluster& cluster)
    : model_(model),
      levels_(static_cast<double>(cluster.levels.size())),
      one_class_(nodes.parts().size() == 1) {
  const std::array<index_t, 4> matrices{
      model.query_columns() + 2 * model.kv_heads * model.head_size(), model.query_columns(),
      model.activation == Activation::swiglu ? 2 * model.ffn : model.ffn, model.ffn};
  const auto sum = std::accumulate(matrices.begin(), matrices.end(), index_t{0});
  least_matrix_ =
      4 * kUneven * static_cast<double>(std::ranges::min(matrices)) / static_cast<double>(sum);
  for (const Level& level : cluster.levels) {
    if (level.nodes != 1) ++outer_levels_;
    std::vector<Line>& known = level.nodes == 1 ? inside_ : between_;
    for (const Line& line : lines_of(level)) known.push_back(line);
  }
  // What no level inside a node has, the next one does.
  inside_.insert(inside_.end(), between_.begin(), between_.end());
  if (between_.empty()) between_ = inside_;
  for (const JobPart& part : nodes.parts()) {
    const NodeClass& own = cluster.classes[part.node_class];
    ranks_per_node_ = std::max(ranks_per_node_, own.ranks_per_node);
    on_gpus_ = on_gpus_ || own.device != "cpu";
  }
}

// Members on one node reach each other inside it; the others do not.
MessageBounds::Spread MessageBounds::spread(index_t members, index_t here) const {
  return {static_cast<double>(here), static_cast<double>(members - 1),
          static_cast<double>(std::max<index_t>(1, ranks_per_node_ / here))};
}

double MessageBounds::least(const std::vector<Line>& lines, double messages, double bytes,
                            double groups) {
  double least = std::numeric_limits<double>::infinity();
  for (const Line& line : lines) least = std::min(least, line.seconds(messages, bytes, groups));
  return lines.empty() ? 0 : least;  // pricing says what is missing
}

// Gathers and sums of few bytes go in rounds, of which each level has some. Of a large sum the
// parts at single levels may still be few bytes: so many peers do not count. Parts of one size are
// an average of parts that differ: up to kUnlike times.
double MessageBounds::calls_seconds(Verb verb, double calls, double bytes,
                                    const Spread& spread) const {
  const double peers = spread.peers, least_call = bytes / calls * least_matrix_;
  const bool sums = verb == Verb::all_reduce;
  const double small = 2.0 * kSmallAllReduce * size_of(DType::f32) / least_call;
  const bool one_level = spread.here == 1 && outer_levels_ == 1;
  const double lost = !sums || (one_level && small <= 1) ? 0 : peers * levels_ * small;
  if (lost >= peers || (verb == Verb::all_gather && least_call <= peers * kSmallPart)) {
    const double rounds = calls * rounds_at_least(peers);
    return least(spread.here == 1 ? between_ : inside_, rounds, bytes, 1);
  }
  const double inner = spread.here - 1, outer = peers - inner, each = sums ? 2 * calls : calls;
  const double out = bytes * outer / peers;
  const auto messages = [&](double others) { return each * std::max(0.0, others - lost); };
  const double between =
      outer > 0 ? least(between_, messages(outer), out, static_cast<double>(ranks_per_node_)) : 0;
  return between + least(inside_, messages(inner), bytes - out, spread.groups);
}

// With the least computing and the least messages the sum of computing and of what is waited for is
// the least, too (exposed_messages()).
double MessageBounds::seconds(const JobCandidate& candidate, const PlanRecipe& recipe,
                              double tokens, double computing, const OnNode& here) const {
  const double micros = micro_batches(candidate, recipe);
  const MessageCover cover = message_cover(recipe.base.aggregate.method, candidate.recompute,
                                           passes(candidate, recipe), on_gpus_);
  const auto [inside, over] =
      exposed_messages(weights_seconds(candidate, recipe, micros, here), computing, cover);
  return linears_seconds(candidate, recipe, tokens, micros, here) + inside + over;
}

// Of several classes the slowest replica may have fewer passes than most.
double MessageBounds::passes(const JobCandidate& candidate, const PlanRecipe& recipe) const {
  return one_class_ ? micro_batches(candidate, recipe) : 1;
}

double MessageBounds::linear_calls(const JobCandidate& candidate, const PlanRecipe& recipe) const {
  const auto& [p, q, r] = candidate.cuboid;
  const double axes = (q > 1 ? 1 : 0) + (r > 1 ? 1 : 0);
  return axes * 2 * kLinearCalls * static_cast<double>(model_.layers) * passes(candidate, recipe);
}

// Each linear gathers and sums in each direction, half of them over j and half over k.
double MessageBounds::linears_seconds(const JobCandidate& candidate, const PlanRecipe& recipe,
                                      double tokens, double micros, const OnNode& here) const {
  const auto& [p, q, r] = candidate.cuboid;
  const ModelConfig& m = model_;
  const auto act = static_cast<double>(size_of(activation_of(recipe.base.compute)));
  const auto layers = static_cast<double>(m.layers);
  const auto inner = static_cast<double>(2 * m.query_columns() + 2 * m.kv_heads * m.head_size() +
                                         (m.activation == Activation::swiglu ? 3 : 2) * m.ffn);
  const auto over = [&](index_t members, index_t on_node, double columns) {
    const Spread where = spread(members, on_node);
    // Even parts: the mean rank, which the largest one is not below.
    const double bytes =
        kUneven * layers * tokens * columns * act * where.peers / static_cast<double>(members);
    const double calls = kLinearCalls * layers * micros;
    return calls_seconds(Verb::all_gather, calls, bytes, where) +
           calls_seconds(Verb::reduce_scatter, calls, bytes, where);
  };
  double seconds = 0;
  const auto& [on_i, on_j, on_k, on_d] = here;
  if (q > 1) seconds += over(q, on_j, 4 * static_cast<double>(m.hidden) / static_cast<double>(r));
  if (r > 1) {
    seconds += over(r, on_k, inner / static_cast<double>(q));
    const double statistics = (4 * layers + 2) * micros;  // of norms, forward and backward
    const std::vector<Line>& any = spread(r, on_k).here == 1 ? between_ : inside_;
    seconds += least(any, statistics * rounds_at_least(static_cast<double>(r - 1)), 0, 1);
  }
  return seconds;
}

// A block's matrices are gathered and their gradients summed over i, then over the replicas.
WeightMessages MessageBounds::weights_seconds(const JobCandidate& candidate,
                                              const PlanRecipe& recipe, double micros,
                                              const OnNode& here) const {
  const auto& [p, q, r] = candidate.cuboid;
  const DType activation = activation_of(recipe.base.compute);
  const auto act = static_cast<double>(size_of(activation)),
             acc = static_cast<double>(size_of(accumulator_of(activation)));
  const double weights =
      kUneven * static_cast<double>(parameter_count(model_)) / static_cast<double>(q * r);
  const double matrices = 4 * static_cast<double>(model_.layers);
  const auto& [on_i, on_j, on_k, on_d] = here;
  WeightMessages seconds;
  if (p > 1) {
    const auto blocks = static_cast<double>(parameter_count(model_) -
                                            (2 * model_.vocab + model_.context) * model_.hidden);
    const bool kept =
        recipe.keep == KeepRule::all ||
        (recipe.keep == KeepRule::automatic &&
         kUneven * blocks / static_cast<double>(q * r) * act <= recipe.gather_budget_mib * 1048576);
    const double gathers = kept ? 1 : (candidate.recompute == Recompute::block ? 3 : 2) * micros;
    const Spread where = spread(p, on_i);
    const double moved = weights * where.peers / static_cast<double>(p);
    seconds.inside_replica =
        calls_seconds(Verb::all_gather, matrices * gathers, gathers * act * moved, where) +
        calls_seconds(Verb::reduce_scatter, matrices, acc * moved, where);
  }
  if (candidate.replicas > 1 && recipe.base.aggregate.method != AggregateMethod::adasum) {
    const Spread where = spread(candidate.replicas, on_d);
    const double moved = 2 * weights / static_cast<double>(p) * acc * where.peers /
                         static_cast<double>(candidate.replicas);
    seconds.over_replicas = calls_seconds(Verb::all_reduce, matrices, moved, where);
  }
  return seconds;
}

}  // namespace t3d
