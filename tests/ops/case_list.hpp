// The cases with which every back end is compared with the reference: odd, empty, strided and large
// shapes of each verb. One list, so that no back end is tested less than another.
#pragma once
#include <functional>
#include <span>

#include "ops/op_case.hpp"

namespace t3d::ops_test {

/// What to do with a case.
using CaseFn = std::function<void(const OpCase&)>;
/// The activation dtypes that the back end has.
using DTypes = std::span<const DType>;

void each_gemm_case(DTypes dtypes, const CaseFn& fn);
void each_large_gemm_case(DTypes dtypes, const CaseFn& fn);
void each_attention_case(DTypes dtypes, const CaseFn& fn);
/// Single rows of sequences: their products, attention, positions and places.
void each_decoding_case(DTypes dtypes, const CaseFn& fn);
void each_rope_case(DTypes dtypes, const CaseFn& fn);
void each_norm_case(DTypes dtypes, const CaseFn& fn);
void each_activation_case(DTypes dtypes, const CaseFn& fn);
void each_embedding_case(DTypes dtypes, const CaseFn& fn);
void each_xent_case(DTypes dtypes, const CaseFn& fn);
void each_elementwise_case(DTypes dtypes, const CaseFn& fn);
void each_random_case(DTypes dtypes, const CaseFn& fn);
void each_sum_case(DTypes dtypes, const CaseFn& fn);
void each_optimizer_case(DTypes dtypes, const CaseFn& fn);
/// `dtypes`: of gradients; combinations are written in all of them.
void each_aggregate_case(DTypes dtypes, const CaseFn& fn);

/// The worst error of one buffer in units of what is allowed (1 and less passes).
[[nodiscard]] double worst_ratio(const Buffer& result, const Buffer& expected);

}  // namespace t3d::ops_test
