// Exact-integer tests of the 3-D linear: entries in {-1,0,1} and sums that every dtype represents,
// so forward, dgrad, wgrad and bias must equal the dense product bitwise on every cuboid, with
// uneven, prime and empty parts, and counted bytes must equal predicted ones.
#include "tensor3d/linear3d.hpp"

#include <mutex>

#include "support/catch.hpp"
#include "support/rank_context.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

int small_integer(index_t a, index_t b, int salt) {
  return static_cast<int>(random_bits({static_cast<std::uint64_t>(salt), 7}, a * 1000003 + b) % 3) -
         1;
}
int x_at(index_t t, index_t k) { return small_integer(t, k, 1); }
int w_at(index_t n, index_t k) { return small_integer(n, k, 2); }
int b_at(index_t n) { return small_integer(n, 0, 3); }
int dy_at(index_t t, index_t n) { return small_integer(t, n, 4); }

struct Case {
  Grid grid;
  Axis out_axis = Axis::j;
  index_t sequences = 5, length = 3;
  index_t groups_out = 7, groups_in = 11;
  std::vector<index_t> segments{1};
  index_t in_width = 1;  // columns per input group
  bool out_panels = false, in_panels = false, bias = true, keep = true;
  DType dtype = DType::f32;
  bool reference = true;
};

Partition widths(const char* name, index_t n, index_t parts, const std::vector<double>& weights) {
  return weights.empty() ? Partition::even(name, n, parts) : Partition::weighted(name, n, weights);
}

struct Failures {
  std::mutex mutex;
  int count = 0;
  std::string first;
  void expect(double got, double want, const std::string& what) {
    if (got == want) return;
    const std::lock_guard lock(mutex);
    if (count++ == 0) first = fmt::format("{}: got {}, want {}", what, got, want);
  }
};

class Fixture {
 public:
  Fixture(const Case& c, Communicator& world, Failures& failures)
      : case_(c),
        rank_(world, c.grid.shape(), c.dtype, c.reference),
        failures_(failures),
        shape_(shape_of(c)),
        weights_(rank_.context, rank_.mesh.along(Axis::i),
                 table("w", Group::i,
                       linear_weight("l", shape_, rank_.mesh.shape(), rank_.mesh.coord(), 0.02))),
        vectors_(rank_.context,
                 c.out_axis == Axis::j ? rank_.mesh.plane_ik() : rank_.mesh.plane_ij(),
                 table("v", c.out_axis == Axis::j ? Group::ik : Group::ij,
                       linear_bias("l", shape_, rank_.mesh.shape(), rank_.mesh.coord()))) {
    rank_.context.keep_inputs = rank_.context.keep_weights = c.keep;
    linear_ = std::make_unique<Linear3d>(rank_.context, "l", shape_, weights_,
                                         c.bias ? &vectors_ : nullptr);
    weights_.allocate();
    vectors_.allocate();
    fill(weights_, [](index_t n, index_t k) { return w_at(n, k); });
    fill(vectors_, [](index_t n, index_t) { return b_at(n); });
    tokens_ = widths("tokens", c.sequences, c.grid.p, c.grid.tokens).scaled(c.length, "tokens");
    columns_ = shape_.out.columns();
    inputs_ = shape_.in.columns();
    own_panel(shape_.out);
  }

  void run() {
    vectors_.acquire();
    DistTensor x =
        make(linear_->input_layout(tokens_), [](index_t t, index_t k) { return x_at(t, k); });
    rank_.mesh.world().ledger().clear();

    Linear3d::Saved saved;
    const DistTensor y = linear_->forward(x, &saved);
    check_y(y);
    DistTensor dy{y.layout, rank_.context.make(case_.dtype, y.local.rows(), y.local.cols(),
                                               MemoryKind::activations)};
    for (index_t t = 0; t < dy.local.rows(); ++t)
      for (index_t n = 0; n < dy.local.cols(); ++n)
        set(dy.local, t, n, dy_at(row0(y) + t, y_columns_[static_cast<std::size_t>(n)]));
    const DistTensor dx = linear_->backward(dy, x, saved);
    check_dx(dx);
    weights_.start_reduce();
    weights_.finish_reduce();
    const std::string fault = difference(rank_.mesh.world().ledger(), predicted(x, y));
    failures_.expect(fault.empty() ? 0 : 1, 0, fault);
    vectors_.start_reduce();
    vectors_.finish_reduce();
    check_gradients();
  }

 private:
  static LinearShape shape_of(const Case& c) {
    const bool out_j = c.out_axis == Axis::j;
    const auto cut_j = [&](const char* name, index_t n) {
      return widths(name, n, c.grid.q, c.grid.outputs);
    };
    const auto cut_k = [&](const char* name, index_t n) {
      return widths(name, n, c.grid.r, c.grid.contractions);
    };
    return linear_shape(c.out_axis,
                        {out_j ? cut_j("out", c.groups_out) : cut_k("out", c.groups_out),
                         c.segments, c.out_panels, false},
                        {out_j ? cut_k("in", c.groups_in) : cut_j("in", c.groups_in),
                         {c.in_width},
                         c.in_panels,
                         false});
  }
  [[nodiscard]] BucketTable table(const char* name, Group group, ParamEntry entry) const {
    BucketTable table(name, group, group == Group::i);
    table.add(std::move(entry));
    cut_shards(table, rank_.mesh.shape(), rank_.mesh.coord(),
               Partition::even("storage", case_.grid.p, case_.grid.p));
    return table;
  }
  /// The formula: a side is gathered by sending the own part to all others, and scattered by
  /// sending all but the own part. Sums of several panels travel in the accumulator's type.
  [[nodiscard]] Ledger predicted(const DistTensor& x, const DistTensor& y) const {
    Ledger bytes;
    const index_t slab = tokens_.size(rank_.mesh.coord().i);
    const auto add_side = [&](const DistTensor& side, const Features& own, Axis cut, Axis other,
                              const Features& summed, index_t gathers) {
      const std::string axis(name_of(other));
      const index_t here = side.local.rows() * side.local.cols();
      const index_t all = slab * own.columns_partition().size(rank_.mesh.coord().at(cut));
      const bool wide = summed.panels && rank_.mesh.extent(cut) > 1;
      bytes.count(Verb::all_gather, axis,
                  gathers * (rank_.mesh.extent(other) - 1) * here * size_of(case_.dtype));
      bytes.count(Verb::reduce_scatter, axis,
                  (all - here) * size_of(wide ? accumulator_of(case_.dtype) : case_.dtype));
    };
    add_side(x, shape_.in, shape_.in_axis, shape_.out_axis, shape_.out, case_.keep ? 1 : 2);
    add_side(y, shape_.out, shape_.out_axis, shape_.in_axis, shape_.in, 1);
    const BucketTable& weights = weights_.table();
    bytes.count(
        Verb::all_gather, "i",
        (case_.keep ? 1 : 2) * (case_.grid.p - 1) * weights.shard_count() * size_of(case_.dtype));
    bytes.count(Verb::reduce_scatter, "i",
                (weights.count - weights.shard_count()) * size_of(accumulator_of(case_.dtype)));
    return bytes;
  }
  template <class Value>
  void fill(ParamBucket& bucket, Value&& value) {
    for (const ParamEntry& entry : bucket.entries())
      for (const PlacedBox& piece : bucket.shard_boxes(entry))
        for (index_t r = 0; r < piece.box.rows; ++r)
          for (index_t c = 0; c < piece.box.cols; ++c)
            set(bucket.master(), 0, piece.offset + r * piece.box.cols + c,
                value(piece.box.row0 + r, piece.box.col0 + c));
    bucket.invalidate();
  }
  template <class Value>
  DistTensor make(const Layout& layout, Value&& value) {
    DistTensor t = DistTensor::make(rank_.context, layout, case_.dtype, MemoryKind::activations);
    const Box box = layout.box(rank_.mesh.shape(), rank_.mesh.coord());
    for (index_t r = 0; r < box.rows; ++r)
      for (index_t c = 0; c < box.cols; ++c) set(t.local, r, c, value(box.row0 + r, box.col0 + c));
    return t;
  }
  index_t row0(const DistTensor& t) const {
    return t.layout.box(rank_.mesh.shape(), rank_.mesh.coord()).row0;
  }
  // Global output features of this rank's local columns: all of W's rows, or its own panel of them.
  void own_panel(const Features& out) {
    std::vector<index_t> rows;
    for (const Box& segment : weights_.entries().front().segments)
      for (index_t n = 0; n < segment.rows; ++n) rows.push_back(segment.row0 + n);
    y_columns_ = rows;
    if (!out.panels) return;
    const Axis other = case_.out_axis == Axis::j ? Axis::k : Axis::j;
    const Partition split =
        Partition::even("p", out.groups.size(rank_.mesh.coord().at(case_.out_axis)),
                        rank_.mesh.extent(other))
            .scaled(out.columns_per_group(), "p");
    const index_t at = rank_.mesh.coord().at(other);
    y_columns_.assign(rows.begin() + split.begin(at), rows.begin() + split.end(at));
  }
  void check_y(const DistTensor& y) {
    failures_.expect(static_cast<double>(y.local.cols()), static_cast<double>(y_columns_.size()),
                     "columns of y");
    for (index_t t = 0; t < y.local.rows(); ++t)
      for (index_t n = 0; n < y.local.cols(); ++n) {
        const index_t row = row0(y) + t;
        const index_t feature = y_columns_[static_cast<std::size_t>(n)];
        int sum = case_.bias ? b_at(feature) : 0;
        for (index_t k = 0; k < inputs_; ++k) sum += x_at(row, k) * w_at(feature, k);
        failures_.expect(get(y.local, t, n), sum, fmt::format("y[{},{}]", row, feature));
      }
  }
  void check_dx(const DistTensor& dx) {
    const Box box = dx.layout.box(rank_.mesh.shape(), rank_.mesh.coord());
    for (index_t t = 0; t < box.rows; ++t)
      for (index_t k = 0; k < box.cols; ++k) {
        int sum = 0;
        for (index_t n = 0; n < columns_; ++n)
          sum += dy_at(box.row0 + t, n) * w_at(n, box.col0 + k);
        failures_.expect(get(dx.local, t, k), sum,
                         fmt::format("dx[{},{}]", box.row0 + t, box.col0 + k));
      }
  }
  void check_gradients() {
    const index_t rows = tokens_.length();
    const auto each = [&](ParamBucket& bucket, const char* what, auto&& value) {
      for (const ParamEntry& entry : bucket.entries())
        for (const PlacedBox& piece : bucket.shard_boxes(entry))
          for (index_t r = 0; r < piece.box.rows; ++r)
            for (index_t c = 0; c < piece.box.cols; ++c)
              failures_.expect(
                  get(bucket.gradient_shard(), 0, piece.offset + r * piece.box.cols + c),
                  value(piece.box.row0 + r, piece.box.col0 + c), what);
    };
    each(weights_, "dW", [&](index_t n, index_t k) {
      int sum = 0;
      for (index_t t = 0; t < rows; ++t) sum += dy_at(t, n) * x_at(t, k);
      return sum;
    });
    each(vectors_, "db", [&](index_t n, index_t) {
      int sum = 0;
      for (index_t t = 0; t < rows; ++t) sum += dy_at(t, n);
      return sum;
    });
  }

  Case case_;
  RankContext rank_;
  Failures& failures_;
  LinearShape shape_;
  ParamBucket weights_, vectors_;
  std::unique_ptr<Linear3d> linear_;
  Partition tokens_;
  index_t columns_ = 0, inputs_ = 0;
  std::vector<index_t> y_columns_;
};

void check(const Case& c) {
  Failures failures;
  run_local_ranks(c.grid.ranks(), [&](Communicator& world) { Fixture(c, world, failures).run(); });
  INFO(c.grid.text() << " " << name_of(c.dtype) << " out " << name_of(c.out_axis) << ": "
                     << failures.first);
  CHECK(failures.count == 0);
}

}  // namespace

TEST_CASE("linear3d equals the dense product bitwise on every cuboid", "[linear3d]") {
  for (const Grid& grid : all_grids())
    for (const Axis axis : {Axis::j, Axis::k})
      for (const DType dtype : {DType::f32, DType::bf16})
        for (const bool reference : {true, false}) {
          Case c;
          c.grid = grid;
          c.out_axis = axis;
          c.dtype = dtype;
          c.reference = reference;
          check(c);
        }
}

TEST_CASE("linear3d with column panels and segments", "[linear3d]") {
  for (const Grid& grid : all_grids())
    for (const DType dtype : {DType::f32, DType::bf16}) {
      Case qkv;  // q | k | v of 3 query heads per group, cut over j, panels over k
      qkv.grid = grid;
      qkv.dtype = dtype;
      qkv.segments = {6, 2, 2};
      qkv.out_panels = true;
      check(qkv);
      Case proj;  // its counterpart: panels come in, roles exchanged
      proj.grid = grid;
      proj.dtype = dtype;
      proj.out_axis = Axis::k;
      proj.groups_in = 5;
      proj.in_width = 6;
      proj.in_panels = true;
      check(proj);
    }
}

TEST_CASE("linear3d gathers again when nothing is kept", "[linear3d]") {
  for (const Grid& grid : all_grids()) {
    Case c;
    c.grid = grid;
    c.keep = false;
    c.segments = {1, 1};
    check(c);
  }
}

TEST_CASE("linear3d on extremes: one token, one feature, more parts than elements", "[linear3d]") {
  for (const Grid& grid : all_grids()) {
    Case c;
    c.grid = grid;
    c.sequences = 1;
    c.length = 1;
    c.groups_out = 1;
    c.groups_in = 1;
    check(c);
    c.bias = false;
    c.sequences = 2;
    c.groups_in = 3;
    check(c);
  }
}
