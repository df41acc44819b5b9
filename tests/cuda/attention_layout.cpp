// What stands between our tensors and cuDNN's: the order of lse, strides of heads, shares of the
// backward pass.
#include "cuda/gemm_rig.hpp"
#include "ops/cuda/attention_cudnn_layout.hpp"
#include "ops/cuda/cudnn_layout.hpp"
#include "support/catch.hpp"

namespace t3d::test {
namespace {

using cuda::CudnnAttentionShape;
using cuda::CudnnShare;
using ops_test::Buffer;

/// Numbers that say where they belong.
float number_at(index_t row, index_t head) { return static_cast<float>(row * 1000 + head); }

void check_round_trip(index_t sequences, index_t length, index_t heads, index_t pad) {
  INFO(sequences << " x " << length << ", heads " << heads << ", pad " << pad);
  Gpu gpu;
  Buffer lse({DType::f32, sequences * length, heads}, pad, 1);
  Buffer statistics({DType::f32, sequences * heads, length}, 0, 2);
  for (index_t r = 0; r < sequences * length; ++r)
    for (index_t h = 0; h < heads; ++h) lse.set(r, h, number_at(r, h));
  const OnDevice there(lse.view(), 0), between(statistics.view(), 0);
  cuda::statistics_from_lse(*gpu.queue, there.view(), length, between.view());
  gpu.queue->synchronize();
  between.download(statistics.view());
  for (index_t r = 0; r < sequences * length; ++r)
    for (index_t h = 0; h < heads; ++h)
      CHECK(statistics.at(r / length * heads + h, r % length) == number_at(r, h));

  Buffer again({DType::f32, sequences * length, heads}, pad, 3);
  const OnDevice back(again.view(), 0);
  cuda::lse_from_statistics(*gpu.queue, between.view(), length, back.view());
  gpu.queue->synchronize();
  back.download(again.view());
  CHECK(again.gaps_intact());
  for (index_t r = 0; r < sequences * length; ++r)
    for (index_t h = 0; h < heads; ++h) CHECK(again.at(r, h) == number_at(r, h));
}

}  // namespace

TEST_CASE("lse changes its order and back") {
  check_round_trip(1, 1, 1, 0);
  check_round_trip(2, 33, 12, 0);
  check_round_trip(3, 40, 5, 3);
  check_round_trip(1, 70, 33, 1);
  check_round_trip(2, 0, 3, 0);
}

TEST_CASE("heads in rows, and as columns") {
  constexpr CudnnAttentionShape kShape{2, 16, 4, 2, 8, true};
  constexpr cuda::CudnnLayout kHeads = kShape.heads_in_rows(4, 64);
  STATIC_REQUIRE(kHeads.dims == cuda::CudnnExtents{2, 4, 16, 8});
  STATIC_REQUIRE(kHeads.strides == cuda::CudnnExtents{16 * 64, 8, 64, 1});
  constexpr cuda::CudnnLayout kColumns = cuda::transposed(kHeads);
  STATIC_REQUIRE(kColumns.dims == cuda::CudnnExtents{2, 4, 8, 16});
  STATIC_REQUIRE(kColumns.strides == cuda::CudnnExtents{16 * 64, 8, 1, 64});
  STATIC_REQUIRE(cuda::transposed(kColumns) == kHeads);
  STATIC_REQUIRE(kShape.statistics().strides == cuda::CudnnExtents{4 * 16, 16, 1, 1});
}

TEST_CASE("shares of the backward pass divide the work and stay within the limit") {
  for (const CudnnAttentionShape& shape :
       {CudnnAttentionShape{12, 1024, 12, 12, 64, true},
        CudnnAttentionShape{7, 2048, 32, 8, 128, true}, CudnnAttentionShape{1, 100, 3, 1, 8, false},
        CudnnAttentionShape{2, 16384, 32, 32, 128, true}}) {
    const index_t one = cuda::backward_bytes_of_kv_head(shape);
    for (const index_t limit : {one, 3 * one, index_t{1} << 30, index_t{1} << 40}) {
      const CudnnShare share = cuda::backward_share(shape, limit);
      CHECK(shape.sequences % share.sequences == 0);
      CHECK(shape.kv_heads % share.kv_heads == 0);
      CHECK((share.sequences == 1 || share.kv_heads == shape.kv_heads));
      if (limit >= one) CHECK(share.sequences * share.kv_heads * one <= limit);
      if (limit >= one * shape.kv_heads * shape.sequences)
        CHECK(share == CudnnShare{shape.sequences, shape.kv_heads});
    }
    CHECK(cuda::backward_share(shape, one / 2) == CudnnShare{1, 1});
  }
}

}  // namespace t3d::test
