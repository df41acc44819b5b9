#include "forecast/candidate_bounds.hpp"

#include <algorithm>
#include <limits>

#include "forecast/cluster/meeting.hpp"
#include "forecast/cluster/sampled_fit.hpp"
#include "hetero/cost/flops.hpp"
#include "tensor3d/model_shape.hpp"

namespace t3d {
namespace {

index_t ceil_div(index_t a, index_t b) { return (a + b - 1) / b; }

constexpr double kMargin = 0.8;  // a product of a fit and a correction may be below both

/// Of one call, what a sample or the fit says that a unit takes at least; 0 where nothing is known.
/// Without samples there is no correction, and the fit is all.
double least_of(const NodeClass& own, OperatorKind kind, ComputeType compute, std::size_t term) {
  double least = std::numeric_limits<double>::infinity();
  bool corrected = false;
  for (const OperatorTable& table : own.operators) {
    if (table.kind != kind || table.format != compute) continue;
    corrected = corrected || !table.samples.empty();
    if (table.fit.terms.size() > term) least = std::min(least, table.fit.terms[term]);
    const auto counts = [&](std::span<const double> shape) { return term_counts(kind, shape); };
    if (table.fit.terms.empty())  // the estimator makes them of the samples, too
      least =
          std::min(least, SampledFit::of_samples(table.samples, form_of(kind), counts).terms[term]);
    for (const Sample& sample : table.samples) {
      const double units =
          counts(std::span(sample.shape).first(form_of(kind).columns.size()))[term];
      if (units > 0) least = std::min(least, sample.seconds / units);
    }
  }
  if (least == std::numeric_limits<double>::infinity()) return 0;
  return corrected ? kMargin * least : least;
}

/// The sum of of_part(size) over `parts` as even as can be.
template <class OfPart>
index_t sum_of_even_parts(index_t length, index_t parts, const OfPart& of_part) {
  const index_t longer = length % parts, size = length / parts;
  return longer * of_part(size + 1) + (parts - longer) * of_part(size);
}

/// Of a replica's largest slab in a step: each micro-batch (even_leaves()) is dealt to the slabs by
/// itself.
index_t slab_sequences(index_t share, index_t leaves, index_t micro, index_t slabs) {
  return sum_of_even_parts(share, leaves, [&](index_t leaf) {
    if (leaf == 0) return index_t{0};
    return sum_of_even_parts(leaf, micro > 0 ? ceil_div(leaf, micro) : 1,
                             [&](index_t sequences) { return ceil_div(sequences, slabs); });
  });
}

}  // namespace

CandidateBounds::CandidateBounds(const ModelConfig& model, const JobNodes& nodes,
                                 const ClusterRates& rates, ComputeType compute)
    : model_(model),
      one_class_(nodes.parts().size() == 1),
      flop_seconds_(std::numeric_limits<double>::infinity()),
      messages_(model, nodes, rates.cluster()) {
  unit_seconds_.fill(flop_seconds_);
  for (const JobPart& part : nodes.parts()) {
    const NodeClass& own = rates.cluster().classes[part.node_class];
    const double least = least_of(own, OperatorKind::matmul, compute, 1);
    flop_seconds_ = std::min(flop_seconds_, least);
    jitters_.push_back(rates.jitter(part.node_class));
    all_flops_ += static_cast<double>(part.nodes * own.ranks_per_node) / least;
    for (std::size_t kind = 0; kind < kOperatorKinds; ++kind)
      unit_seconds_[kind] =
          std::min(unit_seconds_[kind], least_of(own, static_cast<OperatorKind>(kind), compute, 1));
  }
}

// Of several classes the work may be dealt unevenly: then only the sum over all ranks counts, and
// messages are those of an even deal: an estimate.
double CandidateBounds::seconds(const JobCandidate& candidate, const PlanRecipe& recipe,
                                const OnNode& here) const {
  const auto& [p, q, r] = candidate.cuboid;
  const ModelConfig& m = model_;
  // The larger share may be cut into more micro-batches, and be the faster one.
  const index_t share = recipe.sequences / candidate.replicas;
  const auto of_share = [&, slabs = p](index_t sequences) {
    return slab_sequences(sequences, recipe.leaves, candidate.micro, slabs);
  };
  const index_t sequences =
      std::max(of_share(share), of_share(ceil_div(recipe.sequences, candidate.replicas)));
  const double tokens = static_cast<double>(sequences * m.context);
  const index_t groups = ceil_div(m.kv_heads, q);
  const index_t heads = groups * (m.heads / m.kv_heads) * m.head_size(),
                kv = groups * 2 * m.head_size(), ffn = ceil_div(m.ffn, q),
                up = m.activation == Activation::swiglu ? 2 * ffn : ffn;
  const auto hidden = static_cast<double>(ceil_div(m.hidden, r));
  // Of each product: forward, again where blocks are recomputed, the input's gradient, the
  // weight's.
  const bool whole_model = !m.lora.on() && m.freeze.empty();
  const double trained = whole_model ? 1 : 0;
  const double passes = (candidate.recompute == Recompute::block ? 3 : 2) + trained;
  const double block = hidden * static_cast<double>(2 * heads + kv + up + ffn);
  const double slice = static_cast<double>(ceil_div(ceil_div(m.vocab, q), r));
  double flops = 2 * tokens *
                 (static_cast<double>(m.layers) * passes * block +
                  (2 + trained) * slice * static_cast<double>(m.hidden));
  const double all_weights = static_cast<double>(parameter_count(m));
  double update = 0;
  if (one_class_ && whole_model)
    update = all_weights / static_cast<double>(p * q * r) *
             static_cast<double>(optimizer_numbers(recipe.base.optimizer) *
                                 size_of(accumulator_of(activation_of(recipe.base.compute))));
  if (!one_class_) {
    const double all =
        static_cast<double>(share * candidate.replicas * m.context) * 2 *
        static_cast<double>(parameter_count(m) - (m.tied_embeddings ? 0 : m.vocab * m.hidden)) * 2;
    flops = all;
  }
  const double streams = one_class_ ? stream_seconds(candidate, recipe, tokens) : 0;
  const double products = flops * (one_class_ ? flop_seconds_ : 1 / all_flops_) + streams;
  const double messages =
      whole_model ? messages_.seconds(candidate, recipe, tokens, products, here) : 0;
  const double compute = products + update * unit(OperatorKind::optimizer);
  const double meetings = messages_.linear_calls(candidate, recipe);
  double waits = std::numeric_limits<double>::infinity();  // of the class with the least
  for (const Jitter& jitter : jitters_)
    waits = std::min(waits, meeting_seconds(jitter, q * r, compute, meetings));
  return compute + waits + messages;
}

// Attention, norms, residuals, activations and the loss; even parts of the largest slab.
double CandidateBounds::stream_seconds(const JobCandidate& candidate, const PlanRecipe& recipe,
                                       double tokens) const {
  const auto& [p, q, r] = candidate.cuboid;
  const ModelConfig& m = model_;
  const auto act = static_cast<double>(size_of(activation_of(recipe.base.compute)));
  const double forwards = candidate.recompute == Recompute::block ? 2 : 1,
               layers = static_cast<double>(m.layers), part = tokens / static_cast<double>(q * r);
  const double residual = part * static_cast<double>(m.hidden) * act,
               ffn = part * static_cast<double>(m.ffn) * act,
               up = m.activation == Activation::swiglu ? 2 * ffn : ffn;
  const double pairs = part * static_cast<double>(m.query_columns() * m.context);
  const double attention =
      std::min(unit(OperatorKind::attention_forward), unit(OperatorKind::attention_backward));
  const double norms = 2 + 0.5 * (forwards - 1), adds = (r == 1 ? 1 : 2) * forwards;
  const double block = (2 * forwards + 5) * pairs * attention +
                       8 * norms * residual * unit(OperatorKind::norm) +
                       3 * adds * residual * unit(OperatorKind::residual) +
                       (forwards * (up + ffn) + 2 * up + ffn) * unit(OperatorKind::activation);
  const double loss = 3 * part * static_cast<double>(m.vocab) * act * unit(OperatorKind::loss);
  return 0.95 * (layers * block + loss);
}

}  // namespace t3d
