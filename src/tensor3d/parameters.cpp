#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/error.hpp"
#include "tensor3d/frozen.hpp"
#include "tensor3d/one_bucket.hpp"

namespace t3d {
namespace {

// The pieces of a row-major [rows, cols] matrix (global box `box`) that flat range [a, b) covers:
// at most a row's tail, whole rows, and a row's head. `base`: flat index that b's offsets start at.
void append_range(const Box& box, index_t a, index_t b, index_t base, std::vector<PlacedBox>& out) {
  while (a < b) {
    const index_t row = a / box.cols;
    const index_t col = a % box.cols;
    Box piece{box.row0 + row, box.col0 + col, 1, std::min(box.cols - col, b - a)};
    if (col == 0 && b - a >= box.cols) {
      piece.rows = (b - a) / box.cols;
      piece.cols = box.cols;
    }
    out.push_back({piece, a + base});
    a += piece.count();
  }
}

/// Calls visit(row0, rows) for the rows of W[N_o] that a rank holds: by panel, then by segment.
/// Only `segments` (rising), as if the others were not there.
template <class Visit>
void for_each_row_segment(const LinearShape& linear, const std::vector<index_t>& segments,
                          const MeshShape& mesh, const Coord& coord, Visit&& visit) {
  const Features& out = linear.out;
  const index_t part = coord.at(linear.out_axis);
  const index_t panels = out.panels ? mesh.extent(linear.in_axis) : 1;
  const Partition split = Partition::even("panel", out.groups.size(part), panels);
  for (index_t panel = 0; panel < panels; ++panel) {
    index_t base = 0;  // global row where the segment starts
    for (const index_t segment : segments) {
      const index_t columns = out.segments[static_cast<std::size_t>(segment)];
      visit(base + (out.groups.begin(part) + split.begin(panel)) * columns,
            split.size(panel) * columns);
      base += out.groups.length() * columns;
    }
  }
}
template <class Visit>
void for_each_row_segment(const LinearShape& linear, const MeshShape& mesh, const Coord& coord,
                          Visit&& visit) {
  std::vector<index_t> all(linear.out.segments.size());
  std::iota(all.begin(), all.end(), index_t{0});
  for_each_row_segment(linear, all, mesh, coord, std::forward<Visit>(visit));
}

/// Fills the buckets in the order in which the layers come.
class Builder {
 public:
  Builder(const ModelShape& shape, const MeshShape& mesh, const Coord& coord)
      : shape_(shape), model_(shape.model), mesh_(mesh), coord_(coord) {}

  std::vector<BucketTable> build() {
    std::vector<BucketTable> all = outside_blocks();
    for (index_t number = 0; number < model_.layers; ++number)
      for (const BlockLinear linear : kBlockLinears) all.push_back(matrix(number, linear));
    for (BucketTable& bucket : all) complete(bucket);
    return all;
  }

  BucketTable build(std::size_t number) {
    const std::size_t outside = buckets_outside_blocks(model_);
    const std::size_t within = number - outside;
    const auto make = [&] {
      if (number >= outside)
        return matrix(static_cast<index_t>(within / kBlockLinears.size()),
                      kBlockLinears[within % kBlockLinears.size()]);
      if (number == 0) return table();
      if (number + 1 == outside && !model_.tied_embeddings) return head();
      return std::move(outside_blocks()[number]);
    };
    BucketTable bucket = make();
    complete(bucket);
    return bucket;
  }

  static std::size_t buckets_outside_blocks(const ModelConfig& model) {
    return std::size_t{3} + (model.qk_norm ? 1 : 0) + (model.lora.on() ? 2 : 0) +
           (model.tied_embeddings ? 0 : 1);
  }

 private:
  /// Buckets that the blocks fill together.
  struct Shared {
    BucketTable over_k{std::string(kHiddenVectors), Group::ij, false};
    BucketTable over_j{std::string(kInnerVectors), Group::ik, false};
    BucketTable heads{std::string(kHeadVectors), Group::cuboid, false};
    BucketTable adapters_over_k{std::string(kHiddenAdapters), Group::ij, true};
    BucketTable adapters_over_j{std::string(kInnerAdapters), Group::ik, true};
  };

  [[nodiscard]] std::vector<BucketTable> outside_blocks() const {
    Shared shared;
    if (model_.position == Position::learned) shared.over_k.add(positions());
    for (index_t number = 0; number < model_.layers; ++number) add_shared(number, shared);
    add_norm("final_norm", shared.over_k);
    std::vector<BucketTable> all;
    all.push_back(table());
    all.push_back(std::move(shared.over_k));
    all.push_back(std::move(shared.over_j));
    if (model_.qk_norm) all.push_back(std::move(shared.heads));
    if (model_.lora.on()) {
      all.push_back(std::move(shared.adapters_over_k));
      all.push_back(std::move(shared.adapters_over_j));
    }
    if (!model_.tied_embeddings) all.push_back(head());
    return all;
  }

  [[nodiscard]] BucketTable table() const {
    BucketTable bucket(std::string(kTableBucket), Group::i, true);
    bucket.add(vocabulary("wte.weight"));
    return bucket;
  }
  [[nodiscard]] BucketTable head() const {
    BucketTable bucket(std::string(kHeadBucket), Group::i, true);
    bucket.add(vocabulary("head.weight"));
    return bucket;
  }

  void complete(BucketTable& bucket) const {
    freeze(bucket);
    cut_shards(bucket, mesh_, coord_, shape_.cut.storage);
  }

  // What is frozen does not decay either.
  void freeze(BucketTable& bucket) const {
    for (ParamEntry& entry : bucket.entries) {
      entry.frozen = is_frozen(model_, entry.name);
      if (entry.frozen) entry.decay = false;
    }
    bucket.frozen = !bucket.entries.empty() &&
                    std::all_of(bucket.entries.begin(), bucket.entries.end(),
                                [](const ParamEntry& entry) { return entry.frozen; });
  }

  /// [V x H] cut over j and k.
  [[nodiscard]] ParamEntry vocabulary(std::string name) const {
    const Box own{shape_.vocab().begin(coord_.j), shape_.hidden().begin(coord_.k),
                  shape_.vocab().size(coord_.j), shape_.hidden().size(coord_.k)};
    return {std::move(name), model_.vocab, model_.hidden, false, true, normal(), {own}, 0};
  }
  /// [context x H] cut over k.
  [[nodiscard]] ParamEntry positions() const {
    const Box own{0, shape_.hidden().begin(coord_.k), model_.context,
                  shape_.hidden().size(coord_.k)};
    return {"wpe.weight", model_.context, model_.hidden, false, true, normal(), {own}, 0};
  }
  [[nodiscard]] ParamInit normal() const { return {ParamInit::Kind::normal, model_.init_std}; }

  void add_norm(const std::string& name, BucketTable& over_k) const {
    const Box own{shape_.hidden().begin(coord_.k), 0, shape_.hidden().size(coord_.k), 1};
    const auto add = [&](const char* suffix, ParamInit::Kind init) {
      over_k.add({name + suffix, model_.hidden, 1, true, false, {init, 0}, {own}, 0});
    };
    add(".weight", ParamInit::Kind::ones);
    if (model_.norm_vectors() > 1) add(".bias", ParamInit::Kind::zeros);
  }

  /// Of queries or keys: the same for every head, so every rank needs all of it.
  void add_head_norm(const std::string& name, BucketTable& heads) const {
    const index_t size = model_.head_size();
    heads.add(
        {name + ".weight", size, 1, true, false, {ParamInit::Kind::ones, 0}, {{0, 0, size, 1}}, 0});
  }

  struct Linear {
    std::string bucket, name;
    LinearShape shape;
    double init_std;
    bool bias;
  };
  [[nodiscard]] Linear linear(index_t layer, BlockLinear which) const {
    // Residual projections start smaller, by the number of additions to the stream (GPT-2,
    // section 2.3).
    const double residual_std =
        model_.init_std / std::sqrt(2.0 * static_cast<double>(model_.layers));
    const std::string block = fmt::format("blocks.{}", layer);
    switch (which) {
      case BlockLinear::qkv:
        return {block + ".attn.qkv", block + ".attn.qkv", shape_.qkv(), model_.init_std,
                model_.qkv_bias()};
      case BlockLinear::proj:
        return {block + ".attn.proj", block + ".attn.proj", shape_.proj(), residual_std,
                model_.proj_bias()};
      case BlockLinear::up:
        return {block + ".mlp.up",
                block + (model_.activation == Activation::swiglu ? ".mlp.gate_up" : ".mlp.up"),
                shape_.up(), model_.init_std, model_.mlp_bias()};
      case BlockLinear::down: break;
    }
    return {block + ".mlp.down", block + ".mlp.down", shape_.down(), residual_std,
            model_.mlp_bias()};
  }

  [[nodiscard]] BucketTable matrix(index_t layer, BlockLinear which) const {
    const Linear one = linear(layer, which);
    BucketTable bucket(one.bucket, Group::i, true);
    bucket.add(linear_weight(one.name, one.shape, mesh_, coord_, one.init_std));
    return bucket;
  }

  void add_beside(const Linear& linear, BlockLinear which, Shared& shared) const {
    const bool out_over_j = linear.shape.out_axis == Axis::j;
    if (linear.bias)
      (out_over_j ? shared.over_j : shared.over_k)
          .add(linear_bias(linear.name, linear.shape, mesh_, coord_));
    const std::vector<index_t> adapted = adapted_segments(model_, which);
    if (adapted.empty()) return;
    (out_over_j ? shared.adapters_over_k : shared.adapters_over_j)
        .add(adapter_a(linear, std::ssize(adapted)));
    (out_over_j ? shared.adapters_over_j : shared.adapters_over_k).add(adapter_b(linear, adapted));
  }

  // Deviation as of PEFT's uniform numbers within +-1 / sqrt(in).
  [[nodiscard]] ParamEntry adapter_a(const Linear& linear, index_t parts) const {
    const Partition in = linear.shape.in.columns_partition();
    const index_t rows = parts * model_.lora.rank, at = coord_.at(linear.shape.in_axis);
    const ParamInit init{ParamInit::Kind::normal,
                         1 / std::sqrt(3 * static_cast<double>(in.length()))};
    return {linear.name + std::string(kAdapterA),   rows, in.length(), false, true, init,
            {{0, in.begin(at), rows, in.size(at)}}, 0};
  }

  [[nodiscard]] ParamEntry adapter_b(const Linear& linear,
                                     const std::vector<index_t>& adapted) const {
    index_t rows = 0;
    for (const index_t segment : adapted)
      rows += linear.shape.out.groups.length() *
              linear.shape.out.segments[static_cast<std::size_t>(segment)];
    const index_t rank = model_.lora.rank;
    ParamEntry entry{linear.name + std::string(kAdapterB), rows, rank, false, true,
                     {ParamInit::Kind::zeros, 0},          {},   0};
    for_each_row_segment(linear.shape, adapted, mesh_, coord_, [&](index_t row0, index_t count) {
      entry.segments.push_back({row0, 0, count, rank});
    });
    return entry;
  }

  /// What a block adds to the shared buckets.
  void add_shared(index_t layer, Shared& shared) const {
    const std::string name = fmt::format("blocks.{}", layer);
    add_norm(name + ".norm1", shared.over_k);
    add_norm(name + ".norm2", shared.over_k);
    if (model_.qk_norm) {
      add_head_norm(name + ".attn.q_norm", shared.heads);
      add_head_norm(name + ".attn.k_norm", shared.heads);
    }
    for (const BlockLinear which : kBlockLinears) add_beside(linear(layer, which), which, shared);
  }

  const ModelShape& shape_;
  const ModelConfig& model_;
  const MeshShape& mesh_;
  Coord coord_;
};

/// Members of the bucket's group, axis i slowest.
struct Membership {
  index_t slabs = 1, beside = 1;  // extents of axis i and of the group's other axes
  index_t member = 0;
};
Membership membership(Group group, const MeshShape& mesh, const Coord& coord) {
  const index_t p = mesh.extent(Axis::i);
  if (group == Group::i) return {p, 1, coord.i};
  if (group == Group::cuboid) {
    const index_t q = mesh.extent(Axis::j), r = mesh.extent(Axis::k);
    return {p, q * r, (coord.i * q + coord.j) * r + coord.k};
  }
  const Axis other = group == Group::ij ? Axis::j : Axis::k;
  return {p, mesh.extent(other), coord.i * mesh.extent(other) + coord.at(other)};
}

}  // namespace

index_t ParamEntry::local_rows() const {
  index_t sum = 0;
  for (const Box& segment : segments) sum += segment.rows;
  return sum;
}

void BucketTable::add(ParamEntry entry) {
  for (const Box& segment : entry.segments)
    T3D_CHECK(segment.cols == entry.local_cols(), "segments of {} differ in width", entry.name);
  entry.offset = count;
  count += entry.count();
  entries.push_back(std::move(entry));
}

int BucketTable::find(std::string_view entry) const {
  for (std::size_t at = 0; at < entries.size(); ++at)
    if (entries[at].name == entry) return static_cast<int>(at);
  return -1;
}

std::pair<index_t, index_t> BucketTable::shard_range(const ParamEntry& entry) const {
  const index_t begin = shards.begin(member);
  const index_t end = shards.end(member);
  return {std::clamp(entry.offset, begin, end) - begin,
          std::clamp(entry.offset + entry.count(), begin, end) - begin};
}

std::vector<PlacedBox> BucketTable::shard_boxes(const ParamEntry& entry) const {
  return shard_boxes_of(*this, entry, member);
}

std::vector<PlacedBox> shard_boxes_of(const BucketTable& bucket, const ParamEntry& entry,
                                      index_t member) {
  std::vector<PlacedBox> result;
  const index_t begin = bucket.shards.begin(member);
  const index_t end = bucket.shards.end(member);
  index_t at = entry.offset;  // flat start of the segment in the gathered bucket
  for (const Box& segment : entry.segments) {
    const index_t first = std::max(begin, at) - at;
    const index_t last = std::min(end, at + segment.count()) - at;
    if (first < last) append_range(segment, first, last, at - begin, result);
    at += segment.count();
  }
  return result;
}

void cut_shards(BucketTable& bucket, const MeshShape& mesh, const Coord& coord,
                const Partition& storage) {
  const Membership own = membership(bucket.group, mesh, coord);
  bucket.member = own.member;
  bucket.shards =
      stored_evenly(storage)
          ? Partition::even(bucket.name, bucket.count, own.slabs * own.beside, kShardUnit)
          : uneven_shards(bucket.name, bucket.count, storage, own.beside);
}

bool stored_evenly(const Partition& storage) {
  for (index_t part = 1; part < storage.parts(); ++part)
    if (storage.size(part) != storage.size(0)) return false;
  return true;
}

Partition uneven_shards(const std::string& name, index_t count, const Partition& storage,
                        index_t beside) {
  std::vector<double> weights;
  for (index_t member = 0; member < storage.parts() * beside; ++member)
    weights.push_back(static_cast<double>(storage.size(member / beside)));
  return Partition::weighted(name, count, weights, kShardUnit);
}

std::vector<BucketTable> parameter_buckets(const ModelShape& shape, const MeshShape& mesh,
                                           const Coord& coord) {
  return Builder(shape, mesh, coord).build();
}

BucketTable parameter_bucket(const ModelShape& shape, const MeshShape& mesh, const Coord& coord,
                             std::size_t number) {
  return Builder(shape, mesh, coord).build(number);
}

std::size_t bucket_cut_like(const ModelConfig& model, std::size_t number) {
  const std::size_t outside = Builder::buckets_outside_blocks(model);
  return number < outside ? number : outside + (number - outside) % kBlockLinears.size();
}

std::vector<BucketTable> whole_buckets(const ModelConfig& model) {
  ReplicaPlan whole;
  whole.hidden = Partition::even("hidden", model.hidden, 1);
  whole.groups = Partition::even("groups", model.kv_heads, 1);
  whole.ffn = Partition::even("ffn", model.ffn, 1);
  whole.vocab = Partition::even("vocab", model.vocab, 1);
  whole.storage = Partition::even("storage", 1, 1);
  return parameter_buckets(ModelShape(model, whole), MeshShape(1, 1, 1, 1), {});
}

ParamEntry linear_weight(const std::string& name, const LinearShape& linear, const MeshShape& mesh,
                         const Coord& coord, double init_std) {
  const Partition in = linear.in.columns_partition();
  const index_t at = coord.at(linear.in_axis);
  ParamEntry weight{name + ".weight",
                    linear.out.columns(),
                    linear.in.columns(),
                    false,
                    true,
                    {ParamInit::Kind::normal, init_std},
                    {},
                    0};
  for_each_row_segment(linear, mesh, coord, [&](index_t row0, index_t rows) {
    weight.segments.push_back({row0, in.begin(at), rows, in.size(at)});
  });
  return weight;
}

ParamEntry linear_bias(const std::string& name, const LinearShape& linear, const MeshShape& mesh,
                       const Coord& coord) {
  ParamEntry bias{name + ".bias", linear.out.columns(),        1,  true,
                  false,          {ParamInit::Kind::zeros, 0}, {}, 0};
  for_each_row_segment(linear, mesh, coord, [&](index_t row0, index_t rows) {
    bias.segments.push_back({row0, 0, rows, 1});
  });
  return bias;
}

}  // namespace t3d
