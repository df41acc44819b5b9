#include "tensor3d/parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"

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
template <class Visit>
void for_each_row_segment(const LinearShape& linear, const MeshShape& mesh, const Coord& coord,
                          Visit&& visit) {
  const Features& out = linear.out;
  const index_t part = coord.at(linear.out_axis);
  const index_t panels = out.panels ? mesh.extent(linear.in_axis) : 1;
  const Partition split = Partition::even("panel", out.groups.size(part), panels);
  for (index_t panel = 0; panel < panels; ++panel) {
    index_t base = 0;  // global row where the segment starts
    for (const index_t columns : out.segments) {
      visit(base + (out.groups.begin(part) + split.begin(panel)) * columns,
            split.size(panel) * columns);
      base += out.groups.length() * columns;
    }
  }
}

/// Fills the buckets in the order in which the layers come.
class Builder {
 public:
  Builder(const ModelShape& shape, const MeshShape& mesh, const Coord& coord)
      : shape_(shape), model_(shape.model), mesh_(mesh), coord_(coord) {}

  std::vector<BucketTable> build() {
    BucketTable table("wte", Group::i, true);
    BucketTable over_k("vectors over k", Group::ij, false);
    BucketTable over_j("vectors over j", Group::ik, false);
    BucketTable heads("vectors of heads", Group::cuboid, false);
    table.add(vocabulary("wte.weight"));
    if (model_.position == Position::learned) over_k.add(positions());
    std::vector<BucketTable> blocks;
    for (index_t number = 0; number < model_.layers; ++number)
      add_block(fmt::format("blocks.{}", number), over_k, over_j, heads, blocks);
    add_norm("final_norm", over_k);
    std::vector<BucketTable> all;
    all.push_back(std::move(table));
    all.push_back(std::move(over_k));
    all.push_back(std::move(over_j));
    if (model_.qk_norm) all.push_back(std::move(heads));
    if (!model_.tied_embeddings) {
      all.emplace_back("head", Group::i, true);
      all.back().add(vocabulary("head.weight"));
    }
    std::move(blocks.begin(), blocks.end(), std::back_inserter(all));
    for (BucketTable& bucket : all) cut_shards(bucket, mesh_, coord_, shape_.cut.storage);
    return all;
  }

 private:
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

  void add_linear(const std::string& bucket, const std::string& name, const LinearShape& linear,
                  double init_std, bool bias, BucketTable& vectors,
                  std::vector<BucketTable>& blocks) const {
    blocks.emplace_back(bucket, Group::i, true);
    blocks.back().add(linear_weight(name, linear, mesh_, coord_, init_std));
    if (bias) vectors.add(linear_bias(name, linear, mesh_, coord_));
  }

  void add_block(const std::string& name, BucketTable& over_k, BucketTable& over_j,
                 BucketTable& heads, std::vector<BucketTable>& blocks) const {
    // Residual projections start smaller, by the number of additions to the stream (GPT-2,
    // section 2.3).
    const double residual_std =
        model_.init_std / std::sqrt(2.0 * static_cast<double>(model_.layers));
    const char* up = model_.activation == Activation::swiglu ? ".mlp.gate_up" : ".mlp.up";
    add_norm(name + ".norm1", over_k);
    add_norm(name + ".norm2", over_k);
    if (model_.qk_norm) {
      add_head_norm(name + ".attn.q_norm", heads);
      add_head_norm(name + ".attn.k_norm", heads);
    }
    add_linear(name + ".attn.qkv", name + ".attn.qkv", shape_.qkv(), model_.init_std,
               model_.qkv_bias(), over_j, blocks);
    add_linear(name + ".attn.proj", name + ".attn.proj", shape_.proj(), residual_std,
               model_.proj_bias(), over_k, blocks);
    add_linear(name + ".mlp.up", name + up, shape_.up(), model_.init_std, model_.mlp_bias(), over_j,
               blocks);
    add_linear(name + ".mlp.down", name + ".mlp.down", shape_.down(), residual_std,
               model_.mlp_bias(), over_k, blocks);
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
  std::vector<PlacedBox> result;
  const index_t begin = shards.begin(member);
  const index_t end = shards.end(member);
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
