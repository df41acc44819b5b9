#include "tensor3d/frozen.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tensor3d/parameters.hpp"

namespace t3d {
namespace {

bool bucket_is_frozen(const std::vector<BucketTable>& buckets, std::string_view name) {
  return std::any_of(buckets.begin(), buckets.end(), [&](const BucketTable& bucket) {
    return bucket.name == name && bucket.frozen;
  });
}

}  // namespace

// Greedy: after a mismatch the last '*' takes one letter more.
bool matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0, star = std::string_view::npos, from = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p, ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++from;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

bool is_adapter(std::string_view parameter) {
  return parameter.ends_with(kAdapterA) || parameter.ends_with(kAdapterB);
}

bool is_frozen(const ModelConfig& model, std::string_view parameter) {
  if (is_adapter(parameter)) return false;
  return model.lora.on() ||
         std::any_of(model.freeze.begin(), model.freeze.end(),
                     [&](const std::string& p) { return matches(p, parameter); });
}

std::vector<std::string> parameter_names(const ModelConfig& model) {
  ModelConfig any = model;
  any.vocab = std::max<index_t>(1, model.vocab);
  std::vector<std::string> names;
  for (const BucketTable& bucket : whole_buckets(any))
    for (const ParamEntry& entry : bucket.entries) names.push_back(entry.name);
  return names;
}

ParameterCounts parameter_counts(const ModelConfig& model) {
  ParameterCounts counts;
  for (const BucketTable& bucket : whole_buckets(model)) {
    counts.all += bucket.count;
    if (!bucket.frozen) counts.with_state += bucket.count;
    for (const ParamEntry& entry : bucket.entries)
      if (!entry.frozen) counts.trained += entry.count();
  }
  return counts;
}

FrozenBuckets::FrozenBuckets(const ModelConfig& model) {
  if (!model.lora.on() && model.freeze.empty()) return;
  const std::vector<BucketTable> all = whole_buckets(model);
  table = bucket_is_frozen(all, kTableBucket);
  hidden_vectors = bucket_is_frozen(all, kHiddenVectors);
  inner_vectors = bucket_is_frozen(all, kInnerVectors);
  head_vectors = bucket_is_frozen(all, kHeadVectors);
  head = bucket_is_frozen(all, kHeadBucket);
  blocks.resize(static_cast<std::size_t>(model.layers));
  // The blocks' matrices are the last buckets.
  const std::size_t first = all.size() - 4 * blocks.size();
  for (std::size_t block = 0; block < blocks.size(); ++block)
    for (std::size_t kind = 0; kind < 4; ++kind)
      blocks[block][kind] = all[first + 4 * block + kind].frozen;
}

bool FrozenBuckets::alike() const {
  return std::all_of(blocks.begin(), blocks.end(),
                     [&](const auto& block) { return block == blocks.front(); });
}

index_t FrozenBuckets::count(std::size_t kind) const {
  return std::count_if(blocks.begin(), blocks.end(),
                       [&](const auto& block) { return block[kind]; });
}

}  // namespace t3d
