#include "forecast/candidate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

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
        consider({replicas, {p, q, ranks / replicas / p / q}});
  return all;
}

}  // namespace t3d
