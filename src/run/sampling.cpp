#include "run/sampling.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/random.hpp"

namespace t3d {
namespace {

struct WeightedToken {
  std::int32_t id;
  double weight;
};

bool likelier(const WeightedToken& a, const WeightedToken& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
}

double sum_of(const std::vector<WeightedToken>& tokens) {
  double sum = 0;
  for (const WeightedToken& token : tokens) sum += token.weight;
  return sum;
}

std::vector<WeightedToken> all_weights(std::span<const float> logits, double temperature) {
  const float highest = *std::max_element(logits.begin(), logits.end());
  std::vector<WeightedToken> all;
  all.reserve(logits.size());
  for (std::size_t id = 0; id < logits.size(); ++id) {
    const double distance = static_cast<double>(logits[id]) - static_cast<double>(highest);
    all.push_back({static_cast<std::int32_t>(id), std::exp(distance / temperature)});
  }
  return all;
}

/// The k likeliest, in order.
void keep_likeliest(std::vector<WeightedToken>& tokens, std::size_t k) {
  const auto end = tokens.begin() + static_cast<std::ptrdiff_t>(k);
  if (end != tokens.end()) std::nth_element(tokens.begin(), end, tokens.end(), likelier);
  tokens.erase(end, tokens.end());
  std::sort(tokens.begin(), tokens.end(), likelier);
}

/// The likeliest that make up `share` of all, in order: more and more of them are sorted until they
/// do.
void keep_share(std::vector<WeightedToken>& tokens, double share) {
  const double wanted = share * sum_of(tokens);
  std::size_t sorted = 0;
  double sum = 0;
  for (std::size_t next = 64;; next *= 4) {
    const std::size_t end = std::min(next, tokens.size());
    const auto at = [&](std::size_t place) {
      return tokens.begin() + static_cast<std::ptrdiff_t>(place);
    };
    if (end < tokens.size()) std::nth_element(at(sorted), at(end), tokens.end(), likelier);
    std::sort(at(sorted), at(end), likelier);
    for (; sorted < end; ++sorted) {
      if (sorted > 0 && sum >= wanted) return tokens.resize(sorted);
      sum += tokens[sorted].weight;
    }
    if (end == tokens.size()) return;
  }
}

}  // namespace

std::int32_t choose_token(std::span<const float> logits, const SamplingOptions& options,
                          index_t prompt, index_t token) {
  if (options.greedy)
    return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) -
                                     logits.begin());
  std::vector<WeightedToken> left = all_weights(logits, options.temperature);
  if (options.top_k > 0 && options.top_k < std::ssize(left))
    keep_likeliest(left, static_cast<std::size_t>(options.top_k));
  if (options.top_p < 1) keep_share(left, options.top_p);
  const RandomKey key{static_cast<std::uint64_t>(options.seed),
                      stream_of("generate") + static_cast<std::uint64_t>(prompt)};
  double at = static_cast<double>(random_uniform(key, token)) * sum_of(left);
  for (const WeightedToken& candidate : left) {
    at -= candidate.weight;
    if (at < 0) return candidate.id;
  }
  return std::max_element(left.begin(), left.end(),
                          [](const auto& a, const auto& b) { return likelier(b, a); })
      ->id;
}

}  // namespace t3d
