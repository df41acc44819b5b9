// One operator call as data: its buffers, how far the result may be from the reference, and what it
// costs. The same case serves the comparison with the reference and the speed printout.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ops/ops.hpp"

namespace t3d::ops_test {

enum class Role { in, out, inout };
/// normal: standard deviation `spread`; positive: 0.5 .. 0.5 + spread; integer: -spread .. spread;
/// garbage: must be overwritten.
enum class Content { normal, positive, integer, garbage };

struct BufferSpec {
  DType dtype = DType::f32;
  index_t rows = 0, cols = 0;
  Role role = Role::in;
  Content content = Content::normal;
  double spread = 1;
  /// Allowed |result - reference| beside one rounding of the result: c eps32 sqrt(n) |terms|.
  double bound = 0;
  bool may_pad = true;  // false where the contract wants contiguous memory
};

/// Host memory for one spec; rows are `pad` elements longer than the matrix, then rounded up to a
/// multiple of `unit`. A test of a device
/// puts a copy there and lets view() name it.
class Buffer {
 public:
  Buffer(const BufferSpec& spec, index_t pad, std::uint64_t stream, index_t unit = 1);
  [[nodiscard]] TensorView view();
  /// From now on view() is at `memory`; nullptr: here.
  void show_at(void* memory) { shown_ = memory; }
  [[nodiscard]] const BufferSpec& spec() const { return spec_; }
  [[nodiscard]] double at(index_t row, index_t col) const;
  void set(index_t row, index_t col, double value);
  /// The bytes between the rows still hold what the constructor wrote.
  [[nodiscard]] bool gaps_intact() const;
  [[nodiscard]] bool same_bytes(const Buffer& other) const { return bytes_ == other.bytes_; }

 private:
  BufferSpec spec_;
  index_t ld_;
  std::vector<std::byte> bytes_;
  void* shown_ = nullptr;
};

struct OpCase {
  std::string name;
  std::vector<BufferSpec> buffers;
  std::function<void(Ops&, Queue&, std::vector<Buffer>&)> call;
  std::function<void(std::vector<Buffer>&)> prepare;  // contents that no Content describes; or none
  double flops = 0;
  double bytes = 0;  // that must move at least

  [[nodiscard]] std::vector<Buffer> make_buffers(index_t pad = 0, index_t unit = 1) const;
};

inline constexpr double kEps32 = 0x1p-23;
[[nodiscard]] double rounding_of(DType dtype);  // largest relative distance of neighbours

struct GemmShape {
  index_t m, n, k;
  bool transpose_a = false, transpose_b = false, accumulate = false, bias = false;
};
struct AttentionShape {
  index_t sequences, length, heads, kv_heads, head_size;
  bool causal = true;
};

OpCase gemm_case(const GemmShape& shape, DType in, DType out);
/// With GemmArgs::rows_alone: A [m,k], B [n,k].
OpCase row_product_case(const GemmShape& shape, DType in, DType out);
/// Rows of sequences of different lengths among `sequences` kept ones, some of no sequence.
struct KeptShape {
  index_t rows, sequences, capacity, heads, kv_heads, head_size;
};
OpCase kept_attention_case(const KeptShape& shape, DType dtype);
OpCase attention_forward_case(const AttentionShape& shape, DType dtype);
OpCase attention_backward_case(const AttentionShape& shape, DType dtype);
/// Every row at a position of its own.
OpCase rope_positions_case(index_t rows, index_t heads, index_t size, DType dtype);
/// Rows to places in another order; every third one has none.
OpCase put_rows_case(index_t rows, index_t cols, DType from, DType to);
OpCase rope_case(index_t rows, index_t length, index_t heads, index_t size, bool inverse, DType,
                 RopeScaling scaling = RopeScaling::none);
OpCase norm_forward_case(NormKind kind, index_t rows, index_t cols, DType dtype);
OpCase norm_backward_case(NormKind kind, index_t rows, index_t cols, bool accumulate, DType dtype);
OpCase norm_whole_case(NormKind kind, index_t rows, index_t cols, bool branch, DType dtype);
OpCase norm_merge_case(NormKind kind, index_t rows, index_t parts);
OpCase activation_forward_case(Activation kind, index_t rows, index_t cols, DType dtype);
OpCase activation_backward_case(Activation kind, index_t rows, index_t cols, DType dtype);
OpCase embed_case(index_t rows, index_t cols, index_t table_rows, DType dtype);
OpCase scatter_case(index_t rows, index_t cols, index_t table_rows, DType dtype);
OpCase positions_case(index_t rows, index_t cols, index_t length, index_t first, DType dtype);
OpCase xent_stats_case(index_t rows, index_t cols, index_t col0, DType dtype);
OpCase xent_merge_case(index_t rows, index_t parts);
OpCase xent_grad_case(index_t rows, index_t cols, index_t col0, DType dtype);
OpCase fill_case(index_t rows, index_t cols, DType dtype);
OpCase copy_case(index_t rows, index_t cols, DType from, DType to);
OpCase add_case(index_t rows, index_t cols, DType from, DType to);
OpCase scale_case(index_t rows, index_t cols, DType dtype);
OpCase column_sums_case(index_t rows, index_t cols, DType dtype);
OpCase dropout_case(index_t rows, index_t cols, double p, DType dtype);
OpCase random_init_case(index_t rows, index_t cols, DType dtype);
OpCase sum_case(index_t count, bool squares, DType dtype);
/// Where it is set, a number in device memory multiplies the gradient's scale or the learning rate.
struct DeviceNumbers {
  bool scale = false, lr = false;
};
OpCase adamw_case(index_t count, DType grad, DeviceNumbers device = {});
OpCase sgd_case(index_t count, bool nesterov, DType grad, DeviceNumbers device = {});
/// `in_place`: the direction takes the gradient's memory, which is fp32.
OpCase adam_direction_case(index_t count, DType grad, bool in_place);
OpCase clip_factor_case(double squares, double clip_norm);

/// `same`: x is y. `device`: both factors have a part in device memory.
OpCase axpby_case(index_t rows, index_t cols, bool same, bool device);
OpCase norm_ratios_case(index_t count, bool gains);
/// Columns of n vectors: all in one segment, or cut (with gaps, empty segments, several segments
/// of a group and a group without any).
enum class Cut { one, many };
OpCase gram_case(index_t n, index_t count, Cut cut, DType dtype);
/// One vector of several is NaN and has no part.
OpCase combine_case(index_t n, index_t count, Cut cut, DType from, DType to);
/// With vectors that have no weight or are not finite.
struct AdasumShape {
  index_t n, groups;
  AggregateRule rule = AggregateRule::adasum;
  bool noise_leaf = true, plain_leaf = false, noise = true;
  double gain_exponent = 1;
};
OpCase adasum_case(const AdasumShape& shape);
OpCase flat_gains_case(index_t n, index_t groups, double gain_exponent);

}  // namespace t3d::ops_test
