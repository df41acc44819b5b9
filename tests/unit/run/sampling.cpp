// The choice of tokens: shares as the softmax says, what top-k and top-p leave, and that a choice
// depends on nothing but seed, prompt and token number.
#include "run/sampling.hpp"

#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "support/catch.hpp"

using namespace t3d;

namespace {

constexpr index_t kDraws = 20000;

std::map<std::int32_t, double> shares(const std::vector<float>& logits,
                                      const SamplingOptions& options) {
  std::map<std::int32_t, double> result;
  for (index_t token = 0; token < kDraws; ++token)
    result[choose_token(logits, options, token % 5, token)] += 1.0 / static_cast<double>(kDraws);
  return result;
}

/// Softmax over the ids in `kept`.
std::map<std::int32_t, double> expected(const std::vector<float>& logits, double temperature,
                                        const std::vector<std::int32_t>& kept) {
  std::map<std::int32_t, double> result;
  double total = 0;
  for (const std::int32_t id : kept)
    total += result[id] =
        std::exp(static_cast<double>(logits[static_cast<std::size_t>(id)]) / temperature);
  for (auto& [id, share] : result) share /= total;
  return result;
}

void check_shares(const std::vector<float>& logits, const SamplingOptions& options,
                  const std::vector<std::int32_t>& kept) {
  const auto got = shares(logits, options), want = expected(logits, options.temperature, kept);
  for (const auto& [id, share] : got) CHECK(want.count(id) == 1);
  for (const auto& [id, share] : want) {
    const double deviation = std::sqrt(share * (1 - share) / static_cast<double>(kDraws));
    const auto found = got.find(id);
    INFO("id " << id << " wanted " << share);
    CHECK(std::abs((found == got.end() ? 0 : found->second) - share) <= 4.5 * deviation + 1e-9);
  }
}

const std::vector<float> kLogits{1.0F, 3.0F, -2.0F, 2.5F, 3.0F, 0.0F, -HUGE_VALF};

}  // namespace

TEST_CASE("tokens are drawn as their logits say") {
  check_shares(kLogits, {}, {0, 1, 2, 3, 4, 5});
  check_shares(kLogits, {.temperature = 0.5}, {0, 1, 2, 3, 4, 5});
  check_shares(kLogits, {.temperature = 4}, {0, 1, 2, 3, 4, 5});
  check_shares(kLogits, {.top_k = 3}, {1, 3, 4});
  check_shares(kLogits, {.top_k = 100}, {0, 1, 2, 3, 4, 5});
  // 3, 3 and 2.5 have 0.36, 0.36 and 0.22 of all; the third one is needed for 0.8.
  check_shares(kLogits, {.top_p = 0.8}, {1, 3, 4});
  check_shares(kLogits, {.top_p = 0.7}, {1, 4});
  check_shares(kLogits, {.top_p = 1e-9}, {1});
  // Of the two that top-k leaves the first has half.
  check_shares(kLogits, {.top_k = 2, .top_p = 0.5}, {1});
  check_shares(kLogits, {.greedy = true}, {1});
}

TEST_CASE("a share of many tokens is theirs whatever their order") {
  // 1000 tokens; the likeliest 300 make up the share, more than are sorted at first.
  std::vector<float> logits(1000);
  for (std::size_t id = 0; id < logits.size(); ++id)
    logits[id] = -0.002F * static_cast<float>(id * 7 % 1000);
  double all = 0, first = 0;
  for (index_t rank = 0; rank < 1000; ++rank) {
    const double weight = std::exp(-0.002 * static_cast<double>(rank));
    all += weight;
    if (rank < 300) first += weight;
  }
  std::map<std::int32_t, int> seen;
  for (index_t token = 0; token < kDraws; ++token) {
    const SamplingOptions options{.top_p = (first - 1e-3) / all};
    ++seen[choose_token(logits, options, 0, token)];
  }
  CHECK(seen.size() == 300);
  for (const auto& [id, count] : seen) CHECK(id * 7 % 1000 < 300);
}

TEST_CASE("a choice depends on seed, prompt and token") {
  const auto text = [](std::int64_t seed, index_t prompt) {
    std::vector<std::int32_t> ids;
    for (index_t token = 0; token < 40; ++token)
      ids.push_back(choose_token(kLogits, {.seed = seed}, prompt, token));
    return ids;
  };
  CHECK(text(1, 0) == text(1, 0));
  CHECK(text(1, 0) != text(2, 0));
  CHECK(text(1, 0) != text(1, 1));
}
