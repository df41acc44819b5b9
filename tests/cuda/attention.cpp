// Attention engines against the reference: tensor cores and plain arithmetic, every mask, grouped
// heads, lengths around the tiles' borders, rows with gaps, memory of exactly the operands' size.
#include <algorithm>
#include <cmath>
#include <memory>

#include "cuda/gemm_rig.hpp"
#include "ops/case_list.hpp"
#include "ops/cuda/engines.hpp"
#include "ops/reference/matrix.hpp"
#include "support/catch.hpp"

namespace t3d::test {
namespace {

using namespace ops_test;
using reference::Matrix;

/// One call: what the numbers are and where they lie.
struct Trial {
  AttentionShape shape;
  DType dtype = DType::bf16;
  index_t pad = 0, out_pad = 0, dout_pad = 0;  // numbers between rows of qkv; outputs; dout
  double boost = 1;  // queries are multiplied with it: scores spread wider
};

std::unique_ptr<cuda::AttentionEngine> engine_of(Device& device, std::string_view name) {
  auto engines = cuda::make_native_attention_engines(device);
  for (auto& engine : cuda::make_library_attention_engines(device))
    engines.push_back(std::move(engine));
  for (auto& engine : engines)
    if (engine->name() == name) return std::move(engine);
  return nullptr;
}

AttentionArgs args_of(const AttentionShape& s, const TensorView& qkv) {
  return {qkv, s.sequences, s.length, s.heads, s.kv_heads, s.head_size, s.causal};
}

/// qkv, out, lse, dout, dqkv.
std::vector<Buffer> operands(const Trial& trial, DType dtype) {
  const OpCase op = attention_backward_case(trial.shape, dtype);
  auto buffers = op.make_buffers(trial.out_pad);
  buffers[0] = std::move(op.make_buffers(trial.pad)[0]);
  buffers[3] = std::move(op.make_buffers(trial.dout_pad)[3]);
  for (index_t r = 0; r < buffers[0].spec().rows; ++r)
    for (index_t c = 0; c < trial.shape.heads * trial.shape.head_size; ++c)
      buffers[0].set(r, c, buffers[0].at(r, c) * trial.boost);
  return buffers;
}

/// What the engine makes of it; every matrix in memory of exactly its size.
std::vector<Buffer> run(std::string_view engine_name, const Trial& trial) {
  Gpu gpu;
  const auto engine = engine_of(*gpu.device, engine_name);
  REQUIRE(engine != nullptr);
  std::vector<Buffer> host = operands(trial, trial.dtype);
  std::vector<std::unique_ptr<OnDevice>> device;
  for (std::size_t i = 0; i < host.size(); ++i)
    device.push_back(std::make_unique<OnDevice>(host[i].view(), 0));
  const auto view = [&](std::size_t i) { return device[i]->view(); };
  const AttentionArgs args = args_of(trial.shape, view(0));
  REQUIRE(engine->usable(args));
  engine->forward(*gpu.queue, args, view(1), view(2));
  engine->backward(*gpu.queue, args, view(1), view(2), view(3), view(4));
  gpu.queue->synchronize();
  for (std::size_t i = 0; i < host.size(); ++i) {
    device[i]->download(host[i].view());
    CHECK(host[i].gaps_intact());
  }
  return host;
}

/// The reference's results from the same numbers in fp64.
struct Exact {
  Matrix qkv, out, lse, dout, dqkv;
};

Exact exact_of(const Trial& trial, const std::vector<Buffer>& host) {
  auto buffers = operands(trial, DType::f64);
  for (const std::size_t i : {0U, 3U})
    for (index_t r = 0; r < host[i].spec().rows; ++r)
      for (index_t c = 0; c < host[i].spec().cols; ++c) buffers[i].set(r, c, host[i].at(r, c));
  Queue queue;
  attention_backward_case(trial.shape, DType::f64).call(*make_reference_ops(), queue, buffers);
  const auto read = [&](std::size_t i) { return reference::read(buffers[i].view()); };
  return {read(0), read(1), read(2), read(3), read(4)};
}

/// How far a result may be from the exact one, element by element.
struct Bounds {
  Matrix out, lse, dqkv;
};

/// Relative and absolute errors of one rounding, and of arithmetic in fp32.
struct Roundings {
  double store, weight;  // of results; of the weights P and dS before they are multiplied
  double small_store = 0x1p-126, small_weight = 0x1p-126;  // absolute: may become 0 below
  double fp32;  // relative error that a weight exp(score - lse) has from fp32 scores

  Roundings(const Trial& trial, bool tensor_cores)
      : store(rounding_of(trial.dtype) / 2), weight(tensor_cores ? store : 0) {
    // fp16 has multiples of 2^-24 near zero. (Weights are rounded relative to a maximum, never to
    // something smaller than they are.)
    if (trial.dtype == DType::f16) small_store = 0x1p-25;
    if (tensor_cores) small_weight = small_store;
    const auto root = [](index_t n) { return std::sqrt(static_cast<double>(n)); };
    fp32 = kEps32 * (32 + 4 * trial.boost * root(trial.shape.head_size) + root(trial.shape.length));
  }
  [[nodiscard]] double of_weight(double weight_size) const {
    return (weight + 2 * fp32) * weight_size + small_weight;
  }
  [[nodiscard]] double stored(double exact, double error) const {
    return error + store * (std::abs(exact) + error) + small_store;
  }
};

// Every sum is linear in weights w (P, and dS = P (dP - delta)), and w is off by e(w) = of_weight:
//   out   = sum_j P_ij V_j             is off by sum_j e(P_ij) |V_j|, and one rounding of the
//   result delta = sum_d dO_id out_id         by sum_d |dO_id| (error of out_id), and its fp32
//   arithmetic dS_ij = P_ij (dP_ij - delta_i)     by e(dS_ij) + P_ij (error of delta_i and of
//   dP_ij) dV_j  = sum_i P_ij dO_i            by sum_i e(P_ij) |dO_i| dQ_i  = scale sum_j dS_ij K_j
//   by scale sum_j (error of dS_ij) |K_j|; dK_j likewise
// These are worst cases, with all errors at their largest and of one sign.
Bounds bounds_of(const Trial& trial, const Exact& exact, const Roundings& rounding) {
  const AttentionShape& s = trial.shape;
  Bounds bounds{Matrix(exact.out.rows(), exact.out.cols()),
                Matrix(exact.lse.rows(), exact.lse.cols()),
                Matrix(exact.dqkv.rows(), exact.dqkv.cols())};
  const index_t size = s.head_size;
  const double scale = 1 / std::sqrt(static_cast<double>(size));
  const auto each_column = [&](const auto& fn) {
    for (index_t d = 0; d < size; ++d) fn(d);
  };
  for (index_t row = 0; row < s.sequences * s.length; ++row)
    for (index_t h = 0; h < s.heads; ++h) {
      const index_t kv = h / (s.heads / s.kv_heads), q = h * size, k = (s.heads + kv) * size;
      const index_t v = k + s.kv_heads * size, row0 = row / s.length * s.length;
      const index_t keys = s.causal ? row - row0 + 1 : s.length;
      const auto weight_of = [&](index_t key) {
        double score = 0;
        each_column([&](index_t d) { score += exact.qkv(row, q + d) * exact.qkv(key, k + d); });
        return std::exp(score * scale - exact.lse(row, h));
      };
      std::vector<double> weights;
      for (index_t key = row0; key < row0 + keys; ++key) {
        weights.push_back(weight_of(key));
        const double error = rounding.of_weight(weights.back());
        each_column([&](index_t d) {
          bounds.out(row, q + d) += error * std::abs(exact.qkv(key, v + d));
          bounds.dqkv(key, v + d) += error * std::abs(exact.dout(row, q + d));
        });
      }
      bounds.lse(row, h) = rounding.fp32 * (2 + std::abs(exact.lse(row, h)));
      double delta = 0, delta_error = 0;
      each_column([&](index_t d) {
        const double out = exact.out(row, q + d), dout = exact.dout(row, q + d);
        bounds.out(row, q + d) = rounding.stored(out, bounds.out(row, q + d));
        delta += out * dout;
        delta_error += std::abs(dout) * (bounds.out(row, q + d) + rounding.fp32 * std::abs(out));
      });
      for (index_t key = row0; key < row0 + keys; ++key) {
        const double p = weights[static_cast<std::size_t>(key - row0)];
        double dp = 0, terms = 0;
        each_column([&](index_t d) {
          const double term = exact.dout(row, q + d) * exact.qkv(key, v + d);
          dp += term;
          terms += std::abs(term);
        });
        const double error = scale * (rounding.of_weight(p * std::abs(dp - delta)) +
                                      p * (delta_error + rounding.fp32 * terms));
        each_column([&](index_t d) {
          bounds.dqkv(row, q + d) += error * std::abs(exact.qkv(key, k + d));
          bounds.dqkv(key, k + d) += error * std::abs(exact.qkv(row, q + d));
        });
      }
    }
  for (index_t r = 0; r < exact.dqkv.rows(); ++r)
    for (index_t c = 0; c < exact.dqkv.cols(); ++c)
      bounds.dqkv(r, c) = rounding.stored(exact.dqkv(r, c), bounds.dqkv(r, c));
  return bounds;
}

/// Largest error over its bound, and the relative error in the Frobenius norm.
struct Distance {
  double worst = 0, relative = 0;
};

Distance distance_of(const Buffer& got, const Matrix& exact, const Matrix& bound) {
  double worst = 0, error = 0, size = 0;
  for (index_t r = 0; r < exact.rows(); ++r)
    for (index_t c = 0; c < exact.cols(); ++c) {
      const double difference = std::abs(got.at(r, c) - exact(r, c));
      if (std::isnan(difference)) return {HUGE_VAL, HUGE_VAL};
      worst = std::max(worst, difference / bound(r, c));
      error += difference * difference;
      size += exact(r, c) * exact(r, c);
    }
  return {worst, std::sqrt(error / std::max(size, 1e-30))};
}

// Roundings fall at random, so that the norm of the error is far below the sum of the bounds: one
// rounding has a relative error of at most u, evenly spread u / sqrt(3) in the mean, and the norm
// of a sum's error grows no faster than that of the sum. Independent ones add up as their squares:
// two in out (P, and the result), four in dqkv (P, dS, out in delta, and the result).
void check(std::string_view engine, const Trial& trial) {
  const AttentionShape& s = trial.shape;
  INFO(engine << ' ' << name_of(trial.dtype) << ": " << s.sequences << " x " << s.length
              << ", heads " << s.heads << '/' << s.kv_heads << " of " << s.head_size
              << (s.causal ? ", causal" : "") << ", pads " << trial.pad << ' ' << trial.out_pad
              << ' ' << trial.dout_pad << ", boost " << trial.boost);
  const std::vector<Buffer> got = run(engine, trial);
  const Exact exact = exact_of(trial, got);
  const Roundings rounding(trial, engine != "simt");
  const Bounds bounds = bounds_of(trial, exact, rounding);
  const Distance out = distance_of(got[1], exact.out, bounds.out);
  const Distance lse = distance_of(got[2], exact.lse, bounds.lse);
  const Distance dqkv = distance_of(got[4], exact.dqkv, bounds.dqkv);
  CHECK(out.worst <= 1);
  CHECK(lse.worst <= 1);
  CHECK(dqkv.worst <= 1);
  if (trial.boost != 1) return;
  CHECK(out.relative <= std::sqrt(2.0 / 3) * rounding.store + rounding.fp32);
  CHECK(dqkv.relative <= std::sqrt(4.0 / 3) * rounding.store + 2 * rounding.fp32);
}

}  // namespace

TEST_CASE("attention on tensor cores at the borders of its tiles") {
  for (const index_t length : {1, 31, 63, 64, 65, 127, 129, 200, 257})
    for (const bool causal : {true, false}) {
      check("mma", {{1, length, 2, 1, 64, causal}, DType::bf16});
      check("mma", {{1, length, 1, 1, 128, causal}, DType::f16});
    }
}

TEST_CASE("attention on tensor cores with several sequences, grouped heads and gaps") {
  check("mma", {{2, 200, 6, 2, 64, true}, DType::bf16, 8, 8, 8});
  check("mma", {{2, 97, 4, 2, 128, false}, DType::bf16, 8});
  check("mma", {{3, 40, 4, 4, 128, true}, DType::bf16, 0, 16, 8});
  check("mma", {{2, 130, 4, 1, 80, true}, DType::bf16});
  check("mma", {{1, 70, 2, 2, 8, false}, DType::f16, 8});
  check("mma", {{1, 257, 1, 1, 96, true}, DType::f16});
  check("mma", {{1, 33, 3, 3, 40, true}, DType::bf16});
}

TEST_CASE("attention on tensor cores with outputs that 16 bytes do not reach") {
  check("mma", {{1, 70, 2, 1, 64, true}, DType::bf16, 0, 1, 0});
  check("mma", {{1, 70, 2, 1, 128, false}, DType::f16, 8, 3, 8});
  check("mma", {{1, 70, 2, 1, 128, true}, DType::bf16, 0, 0, 1});
}

// Weights are relative to a maximum that only moves when it has grown much: scores must grow. With
// only few keys, all scores may be so small that exp(0 - lse) is infinite: whatever stands in for a
// key that is not there must not count even then.
TEST_CASE("attention with scores far apart or far from zero") {
  for (const bool causal : {true, false}) {
    check("mma", {{1, 300, 1, 1, 64, causal}, DType::bf16, 0, 0, 0, 16});
    check("mma", {{1, 300, 1, 1, 128, causal}, DType::f16, 0, 0, 0, 16});
    check("mma", {{6, 1, 2, 2, 64, causal}, DType::bf16, 0, 0, 0, 256});
    check("mma", {{4, 2, 2, 2, 128, causal}, DType::bf16, 0, 0, 0, 256});
    check("simt", {{1, 150, 1, 1, 64, causal}, DType::f32, 0, 0, 0, 16});
    check("simt", {{6, 1, 2, 2, 64, causal}, DType::bf16, 0, 0, 0, 256});
  }
}

TEST_CASE("attention by plain arithmetic, any head size and alignment") {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    check("simt", {{2, 33, 3, 1, 5, true}, dtype, 3, 3, 1});
    check("simt", {{1, 65, 2, 2, 64, false}, dtype});
    check("simt", {{1, 50, 4, 2, 80, true}, dtype, 1});
    check("simt", {{1, 20, 2, 1, 200, true}, dtype, 0, 1, 8});
  }
  check("simt", {{1, 17, 1, 1, 256, true}, DType::f32});
  check("simt", {{1, 40, 1, 1, 129, false}, DType::f32});
  check("simt", {{1, 1, 1, 1, 1, true}, DType::f32});
}

TEST_CASE("attention by cuDNN") {
  Gpu gpu;
  if (engine_of(*gpu.device, "cuDNN") == nullptr) {
    SUCCEED("no cuDNN here");
    return;
  }
  for (const bool causal : {true, false}) {
    check("cuDNN", {{2, 256, 6, 6, 64, causal}, DType::bf16});
    check("cuDNN", {{3, 128, 8, 2, 128, causal}, DType::f16, 8});
    check("cuDNN", {{1, 200, 4, 4, 64, causal}, DType::bf16, 0, 8, 8});
  }
  check("cuDNN", {{1, 128, 2, 1, 64, true}, DType::bf16, 0, 3, 1});  // ours takes over
}

TEST_CASE("attention of nothing") {
  for (const char* engine : {"mma", "simt"}) {
    check(engine, {{0, 16, 2, 2, 8}});
    check(engine, {{2, 0, 2, 2, 8}});
    check(engine, {{2, 16, 0, 0, 8}});
  }
}

TEST_CASE("attention repeats to the bit") {
  for (const char* engine : {"mma", "simt"}) {
    const Trial trial{{2, 150, 4, 2, 64}};
    const std::vector<Buffer> once = run(engine, trial), again = run(engine, trial);
    for (std::size_t i = 0; i < once.size(); ++i) CHECK(once[i].same_bytes(again[i]));
  }
}

TEST_CASE("attention engines know what they cannot do") {
  Gpu gpu;
  const auto mma = engine_of(*gpu.device, "mma"), simt = engine_of(*gpu.device, "simt");
  alignas(16) static std::byte memory[64];
  const auto args = [&](DType dtype, index_t head_size, index_t ld, index_t offset) {
    const TensorView qkv{memory + offset, dtype, 4, 3 * head_size, ld};
    return args_of({1, 4, 1, 1, head_size}, qkv);
  };
  CHECK(mma->usable(args(DType::bf16, 64, 192, 0)));
  CHECK(mma->usable(args(DType::f16, 8, 32, 16)));
  CHECK_FALSE(mma->usable(args(DType::f32, 64, 192, 0)));
  CHECK_FALSE(mma->usable(args(DType::bf16, 12, 40, 0)));
  CHECK_FALSE(mma->usable(args(DType::bf16, 64, 193, 0)));
  CHECK_FALSE(mma->usable(args(DType::bf16, 64, 192, 2)));
  CHECK_FALSE(mma->usable(args(DType::bf16, 136, 408, 0)));
  CHECK(simt->usable(args(DType::bf16, 137, 411, 2)));
  CHECK_FALSE(simt->usable(args(DType::f32, 257, 771, 0)));
}

}  // namespace t3d::test
