#include "hetero/forecast/candidate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "hetero/cluster/sampled_fit.hpp"
#include "hetero/cost/flops.hpp"
#include "tensor3d/model_shape.hpp"

namespace t3d {
namespace {

index_t ceil_div(index_t a, index_t b) { return (a + b - 1) / b; }

std::vector<index_t> divisors(index_t n) {
  std::vector<index_t> all;
  for (index_t one = 1; one * one <= n; ++one)
    if (n % one == 0) {
      all.push_back(one);
      if (one != n / one) all.push_back(n / one);
    }
  std::sort(all.begin(), all.end());
  return all;
}

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

/// The same of a byte in any collective.
double least_beta(const Level& level) {
  double least = level.beta_seconds_per_byte;
  bool corrected = false;
  for (const CollectiveTable& table : level.collectives) {
    corrected = corrected || !table.samples.empty();
    const Fit fit = !table.fit.terms.empty()
                        ? table.fit
                        : SampledFit::of_samples(table.samples, collective_form(),
                                                 [&](std::span<const double> shape) {
                                                   return term_counts(table.verb, shape);
                                                 });
    least = std::min(least, fit.terms[1]);
    for (const Sample& sample : table.samples)
      if (sample.shape[1] > 0) least = std::min(least, sample.seconds / sample.shape[1]);
  }
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

std::string JobCandidate::text() const {
  std::string text = fmt::format("{} x ({} x {} x {})", replicas, cuboid[0], cuboid[1], cuboid[2]);
  if (micro > 0) text += fmt::format(", micro-batch {}", micro);
  if (recompute == Recompute::block) text += ", recompute";
  return text;
}

std::vector<JobCandidate> candidates_of(const SearchRequest& request, const JobNodes& nodes,
                                        LeftOutMap& left_out) {
  const PlanRecipe& recipe = request.recipe;
  const ModelConfig& model = recipe.base.model;
  std::vector<JobCandidate> all;
  const auto skip = [&](const std::string& why, const JobCandidate& one) {
    LeftOut& entry = left_out[why];
    entry.why = why;
    if (entry.count++ == 0) entry.nearest = one.text();
  };
  const auto add_choices = [&](JobCandidate one) {
    const index_t share = ceil_div(recipe.sequences, one.replicas);
    std::set<index_t> micros{recipe.micro};
    if (request.micro_free) {
      micros = {0};
      for (index_t size = share / 2; size >= one.cuboid[0] && size > 0; size /= 2)
        micros.insert(size);
    }
    for (const index_t micro : micros)
      for (const Recompute recompute : {Recompute::none, Recompute::block}) {
        if (!request.recompute_free && recompute != recipe.base.recompute) continue;
        one.micro = micro;
        one.recompute = recompute;
        all.push_back(one);
      }
  };
  const auto consider = [&](const JobCandidate& one) {
    const auto& [p, q, r] = one.cuboid;
    if (request.replicas && *request.replicas != one.replicas) return;
    if (request.cuboid && *request.cuboid != one.cuboid) return;
    if (one.replicas * p > recipe.sequences)
      skip("more slabs than sequences in a step", one);
    else if (q > model.kv_heads)
      skip("more ranks over j than heads of keys and values", one);
    else if (r > model.hidden)
      skip("more ranks over k than the model is wide", one);
    else
      add_choices(one);
  };
  const index_t ranks = nodes.ranks();
  for (const index_t replicas : divisors(ranks))
    for (const index_t p : divisors(ranks / replicas))
      for (const index_t q : divisors(ranks / replicas / p))
        consider({replicas, {p, q, ranks / replicas / p / q}, 0, Recompute::none, 0});
  return all;
}

CandidateBounds::CandidateBounds(const ModelConfig& model, const JobNodes& nodes,
                                 const ClusterRates& rates, ComputeType compute)
    : model_(model),
      one_class_(nodes.parts().size() == 1),
      on_gpus_(false),
      ranks_(static_cast<double>(nodes.ranks())),
      flop_seconds_(std::numeric_limits<double>::infinity()),
      inside_(flop_seconds_),
      between_(flop_seconds_) {
  unit_seconds_.fill(flop_seconds_);
  for (const Level& level : rates.cluster().levels) {
    double& least = level.nodes == 1 ? inside_ : between_;
    least = std::min(least, least_beta(level));
  }
  if (rates.cluster().levels.empty()) inside_ = between_ = 0;  // pricing says what is missing
  if (inside_ > between_) inside_ = between_;
  if (between_ == std::numeric_limits<double>::infinity()) between_ = inside_;
  for (const JobPart& part : nodes.parts()) {
    const NodeClass& own = rates.cluster().classes[part.node_class];
    ranks_per_node_ = std::max(ranks_per_node_, own.ranks_per_node);
    on_gpus_ = on_gpus_ || own.device != "cpu";
    flop_seconds_ = std::min(flop_seconds_, least_of(own, OperatorKind::matmul, compute, 1));
    for (std::size_t kind = 0; kind < kOperatorKinds; ++kind)
      unit_seconds_[kind] =
          std::min(unit_seconds_[kind], least_of(own, static_cast<OperatorKind>(kind), compute, 1));
  }
}

// Of several classes the work may be dealt unevenly: then only the sum over all ranks counts.
double CandidateBounds::seconds(const JobCandidate& candidate, const PlanRecipe& recipe) const {
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
    flops = all / ranks_;
  }
  const double messages =
      one_class_ && whole_model ? message_seconds(candidate, recipe, tokens) : 0;
  const double streams = one_class_ ? stream_seconds(candidate, recipe, tokens) : 0;
  return flops * flop_seconds_ + update * unit(OperatorKind::optimizer) + streams + messages;
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

// Members at this stride on one node reach each other inside it; the others do not. A node that
// begins with a member has the most of them.
double CandidateBounds::byte_seconds(index_t members, index_t stride) const {
  const index_t here = std::min(ceil_div(ranks_per_node_, stride), members);
  const double out = static_cast<double>(members - here) / static_cast<double>(members - 1);
  return out * between_ + (1 - out) * inside_;
}

// Less than step_traffic(): activations of the linears, weights gathered once, gradients.
double CandidateBounds::message_seconds(const JobCandidate& candidate, const PlanRecipe& recipe,
                                        double tokens) const {
  const auto& [p, q, r] = candidate.cuboid;
  const ModelConfig& m = model_;
  const auto act = static_cast<double>(size_of(activation_of(recipe.base.compute))),
             acc = static_cast<double>(size_of(accumulator_of(activation_of(recipe.base.compute))));
  const auto part = [](index_t members) { return 1 - 1 / static_cast<double>(members); };
  // Even parts: the mean rank, which the largest one is not below.
  const double per_layer = static_cast<double>(m.layers) * tokens * act;
  const double hidden = static_cast<double>(m.hidden) / static_cast<double>(r),
               inner = static_cast<double>(2 * m.query_columns() + 2 * m.kv_heads * m.head_size() +
                                           (m.activation == Activation::swiglu ? 3 : 2) * m.ffn) /
                       static_cast<double>(q);
  const double weights = static_cast<double>(parameter_count(m)) / static_cast<double>(q * r);
  double seconds = 0;
  if (q > 1) seconds += 0.95 * per_layer * 8 * hidden * part(q) * byte_seconds(q, r);
  if (r > 1) seconds += 0.95 * per_layer * 2 * inner * part(r) * byte_seconds(r, 1);
  if (p > 1)
    seconds += (on_gpus_ ? 1 - kHidden : 1) * weights * (act + acc) * part(p) * 0.95 *
               byte_seconds(p, q * r);
  if (candidate.replicas > 1 && recipe.base.aggregate.method != AggregateMethod::adasum)
    seconds += 2 * weights / static_cast<double>(p) * acc * part(candidate.replicas) * 0.95 *
               byte_seconds(candidate.replicas, p * q * r);
  return seconds;
}

}  // namespace t3d
