#include "ops/cpu/gemm.hpp"

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "ops/cpu/kernels.hpp"
#include "ops/cpu/parallel.hpp"

namespace t3d::cpu {
namespace {

using Dims = dnnl::memory::dims;
using Type = dnnl::memory::data_type;

// A slice between two polls. Shorter ones repeat the packing of the other operand too often.
constexpr index_t kSliceExtent = 512;
constexpr double kSliceFlops = 4e8;  // per thread: about 2 ms at 200 GF/s

// oneDNN 3.7 takes a single row or column for a dense vector whatever its stride (wrong results).
bool is_strided_vector(const GemmArgs& args) {
  const auto strided = [](const auto& view) { return view.ld != view.cols; };
  const bool vector = args.c.rows == 1 || args.c.cols == 1;
  return vector && (strided(args.a) || strided(args.b) || strided(args.c));
}

index_t depth_of(const GemmArgs& args) { return args.transpose_a ? args.a.rows : args.a.cols; }

// oneDNN refuses a leading dimension shorter than the row, which a one-row view may have.
index_t ld_of(const ConstTensorView& view) { return std::max(view.ld, view.cols); }

GemmArgs rows_of(const GemmArgs& args, index_t first, index_t n) {
  GemmArgs out = args;
  out.a = args.transpose_a ? args.a.col_range(first, n) : args.a.row_range(first, n);
  out.c = args.c.row_range(first, n);
  return out;
}

GemmArgs cols_of(const GemmArgs& args, index_t first, index_t n) {
  GemmArgs out = args;
  out.b = args.transpose_b ? args.b.row_range(first, n) : args.b.col_range(first, n);
  out.c = args.c.col_range(first, n);
  if (args.bias.data != nullptr) out.bias = args.bias.col_range(first, n);
  return out;
}

void check_shapes(const GemmArgs& args) {
  const index_t m = args.transpose_a ? args.a.cols : args.a.rows;
  const index_t n = args.transpose_b ? args.b.rows : args.b.cols;
  const index_t k = args.transpose_b ? args.b.cols : args.b.rows;
  T3D_CHECK(m == args.c.rows && n == args.c.cols && k == depth_of(args),
            "gemm [{},{}] x [{},{}] -> [{},{}]", m, depth_of(args), k, n, args.c.rows, args.c.cols);
  T3D_CHECK(
      args.a.dtype == args.b.dtype && (args.c.dtype == args.a.dtype || args.c.dtype == DType::f32),
      "gemm of {} x {} -> {}", name_of(args.a.dtype), name_of(args.b.dtype), name_of(args.c.dtype));
}

dnnl::memory::desc matrix(const ConstTensorView& view, bool transpose) {
  const Type type = view.dtype == DType::bf16 ? Type::bf16 : Type::f32;
  const index_t ld = ld_of(view);
  if (transpose) return {Dims{view.cols, view.rows}, type, Dims{1, ld}};
  return {Dims{view.rows, view.cols}, type, Dims{ld, 1}};
}

dnnl::memory memory_at(const dnnl::memory::desc& desc, const dnnl::engine& engine,
                       const void* data) {
  return {desc, engine, const_cast<void*>(data)};  // NOLINT: oneDNN has no const memory
}

struct WidenedA;
struct WidenedB;
struct WidenedC;
struct Scratchpad;

template <class Tag>
TensorView widened(const ConstTensorView& view, bool read) {
  TensorView out(scratch<Tag>(view.count()), DType::f32, view.rows, view.cols);
  if (read)
    for (index_t r = 0; r < view.rows; ++r)
      kernels().copy_bf16_f32(view.as<bf16>() + r * view.ld, out.as<float>() + r * out.ld,
                              view.cols);
  return out;
}

}  // namespace

Gemm::Gemm(int threads, bool native_bf16)
    : threads_(threads), native_bf16_(native_bf16), engine_(dnnl::engine::kind::cpu, 0) {}

void Gemm::run(Queue& queue, const GemmArgs& args) {
  check_shapes(args);
  if (args.c.empty()) return;
  omp_set_num_threads(threads_);  // a setting of the calling thread, which oneDNN reads
  const index_t m = args.c.rows, n = args.c.cols, k = depth_of(args);
  const bool by_rows = m >= n;
  const double flops_per_line = 2.0 * static_cast<double>(by_rows ? n : m) * static_cast<double>(k);
  const auto lines = static_cast<index_t>(kSliceFlops * threads_ / std::max(flops_per_line, 1.0));
  const index_t slice = (std::max(lines, kSliceExtent) + 63) / 64 * 64;
  const index_t total = by_rows ? m : n;
  for (index_t first = 0; first < total; first += slice) {
    const index_t count = std::min(slice, total - first);
    run_slice(by_rows ? rows_of(args, first, count) : cols_of(args, first, count));
    queue.poll();
  }
}

void Gemm::run_slice(const GemmArgs& args) {
  if (args.a.dtype == DType::f32) return run_fp32(args);
  T3D_CHECK(args.a.dtype == DType::bf16, "gemm of {}", name_of(args.a.dtype));
  if (native_bf16_ && depth_of(args) > 0 && !is_strided_vector(args))
    if (const MatmulPtr matmul = matmul_for(args); matmul->usable) return run_bf16(args, *matmul);
  run_through_fp32(args);
}

void Gemm::run_fp32(const GemmArgs& args) {
  const auto* a = args.a.as<float>();
  const auto* b = args.b.as<float>();
  auto* c = args.c.as<float>();
  const index_t k = depth_of(args);
  if (k == 0) {
    for (index_t r = 0; r < args.c.rows && !args.accumulate; ++r)
      std::fill_n(c + r * args.c.ld, args.c.cols, 0.0F);
  } else {
    const auto status = dnnl_sgemm(args.transpose_a ? 'T' : 'N', args.transpose_b ? 'T' : 'N',
                                   args.c.rows, args.c.cols, k, 1.0F, a, ld_of(args.a), b,
                                   ld_of(args.b), args.accumulate ? 1.0F : 0.0F, c, ld_of(args.c));
    T3D_CHECK(status == dnnl_success, "oneDNN sgemm fails with {}", static_cast<int>(status));
  }
  add_bias(args);
}

void Gemm::add_bias(const GemmArgs& args) const {
  if (args.bias.data == nullptr) return;
  parallel_rows(threads_, args.c.rows, 32, [&](index_t first, index_t last) {
    for (index_t r = first; r < last; ++r)
      kernels().add_f32_f32(args.bias.as<float>(), args.c.as<float>() + r * args.c.ld, args.c.cols);
  });
}

Gemm::Matmul Gemm::make(const GemmArgs& args) const {
  Matmul out;
  out.a = matrix(args.a, args.transpose_a);
  out.b = matrix(args.b, args.transpose_b);
  out.c = matrix(args.c, false);
  const bool biased = args.bias.data != nullptr;
  if (biased) out.bias = {Dims{1, args.c.cols}, Type::f32, Dims{args.c.cols, 1}};
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);  // oneDNN's own is bound to one thread
  if (args.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0F);
    attr.set_post_ops(sum);
  }
  try {
    const auto desc = make_matmul(engine_, out.a, out.b, biased ? &out.bias : nullptr, out.c, attr);
    out.usable = std::string_view(desc.impl_info_str()).find("ref") == std::string_view::npos;
    out.scratchpad = desc.scratchpad_desc();
    out.primitive = dnnl::matmul(desc);
  } catch (const dnnl::error&) {
    out.usable = false;  // this processor or version has no such matmul
  }
  return out;
}

Gemm::MatmulPtr Gemm::matmul_for(const GemmArgs& args) {
  const int flags = (args.transpose_a ? 1 : 0) | (args.transpose_b ? 2 : 0) |
                    (args.accumulate ? 4 : 0) | (args.bias.data != nullptr ? 8 : 0) |
                    (args.c.dtype == DType::f32 ? 16 : 0);
  const Key key(args.c.rows, args.c.cols, depth_of(args), args.a.ld, args.b.ld, args.c.ld, flags);
  const std::scoped_lock lock(mutex_);
  auto found = cache_.find(key);
  if (found == cache_.end()) {
    if (cache_.size() == kKept)
      cache_.erase(std::min_element(cache_.begin(), cache_.end(), [](auto& a, auto& b) {
        return a.second.last_use < b.second.last_use;
      }));
    found = cache_.emplace(key, Kept{std::make_shared<const Matmul>(make(args))}).first;
  }
  found->second.last_use = ++uses_;
  return found->second.matmul;
}

void Gemm::trim() {
  const std::scoped_lock lock(mutex_);
  cache_.clear();
}

std::size_t Gemm::kept() {
  const std::scoped_lock lock(mutex_);
  return cache_.size();
}

void Gemm::run_bf16(const GemmArgs& args, const Matmul& matmul) {
  dnnl::stream stream(engine_);
  const auto floats = static_cast<index_t>(matmul.scratchpad.get_size() / sizeof(float)) + 1;
  std::unordered_map<int, dnnl::memory> memories{
      {DNNL_ARG_SRC, memory_at(matmul.a, engine_, args.a.data)},
      {DNNL_ARG_WEIGHTS, memory_at(matmul.b, engine_, args.b.data)},
      {DNNL_ARG_DST, memory_at(matmul.c, engine_, args.c.data)},
      {DNNL_ARG_SCRATCHPAD, memory_at(matmul.scratchpad, engine_, scratch<Scratchpad>(floats))}};
  if (args.bias.data != nullptr)
    memories.emplace(DNNL_ARG_BIAS, memory_at(matmul.bias, engine_, args.bias.data));
  matmul.primitive.execute(stream, memories);
  stream.wait();
}

void Gemm::run_through_fp32(const GemmArgs& args) {
  GemmArgs wide = args;
  wide.a = widened<WidenedA>(args.a, true);
  wide.b = widened<WidenedB>(args.b, true);
  const bool narrow = args.c.dtype == DType::bf16;
  if (narrow) wide.c = widened<WidenedC>(args.c, args.accumulate);
  run_fp32(wide);
  for (index_t r = 0; r < args.c.rows && narrow; ++r)
    kernels().copy_f32_bf16(wide.c.as<float>() + r * wide.c.ld, args.c.as<bf16>() + r * args.c.ld,
                            args.c.cols);
}

}  // namespace t3d::cpu
