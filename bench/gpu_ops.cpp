// Speed of the GPU's verbs at the shapes of GPT-2: microseconds, rate, and percent of the ceiling
// that the same run measured (copying device memory; a large bf16 product), native and library
// engines apart.
//   t3d_bench_gpu [--json FILE] [--tiny] [--seconds N]
// Each figure is the median of at least 20 calls between two events, operands of memory-bound verbs
// larger than the second-level cache. --tiny: small shapes, for trying the program anywhere.
#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "cuda/gemm_rig.hpp"
#include "ops/cuda/make.hpp"

namespace t3d::bench {
namespace {

using namespace ops_test;

struct Options {
  std::string json;
  bool tiny = false;
  double seconds = 150;
};

struct Row {
  std::string part, name, engine;
  double microseconds = 0, rate = 0, percent = 0;
  std::string unit;
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Bench : test::Gpu {
 public:
  explicit Bench(Options options) : options_(std::move(options)), start_(now()) {
    cuda::check(cudaEventCreate(&begin_), "an event");
    cuda::check(cudaEventCreate(&end_), "an event");
    for (const EngineRule engine : {EngineRule::native, EngineRule::library}) {
      EngineOptions wish;
      wish.gemm = wish.attention = engine;
      try {
        engines_.push_back({std::string(word_of(engine)), make_cuda_ops(*device, wish)});
      } catch (const Error& error) {
        fmt::print("{}: {}\n", engine, error.what());
        wish.attention = EngineRule::automatic;  // one library may be there without the other
        try {
          engines_.push_back({std::string(word_of(engine)), make_cuda_ops(*device, wish)});
        } catch (const Error&) {
        }
      }
    }
  }

  void run() {
    ceilings();
    memory_bound();
    attention();
    products();
    if (!options_.json.empty()) write_json();
  }

 private:
  struct Engine {
    std::string name;
    std::unique_ptr<Ops> ops;
  };

  [[nodiscard]] bool out_of_time() const { return now() - start_ > options_.seconds; }
  [[nodiscard]] index_t scaled(index_t n) const {
    return options_.tiny ? std::max<index_t>(8, n / 512) : n;
  }

  double median_microseconds(const std::function<void()>& work) {
    const int repeats = options_.tiny ? 2 : 20;
    work();
    queue->synchronize();
    std::vector<double> times;
    for (int i = 0; i < repeats; ++i) {
      cuda::check(cudaEventRecord(begin_, cuda::stream_of(*queue)), "timing");
      work();
      cuda::check(cudaEventRecord(end_, cuda::stream_of(*queue)), "timing");
      cuda::check(cudaEventSynchronize(end_), "timing");
      float milliseconds = 0;
      cuda::check(cudaEventElapsedTime(&milliseconds, begin_, end_), "timing");
      times.push_back(1000.0 * static_cast<double>(milliseconds));
    }
    std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
    return std::max(times[static_cast<std::size_t>(repeats / 2)], 1e-3);
  }

  void add(Row row) {
    fmt::print("{:11} {:62} {:8} {:12.1f} us {:9.2f} {:8} {:6.1f} %\n", row.part, row.name,
               row.engine, row.microseconds, row.rate, row.unit, row.percent);
    std::fflush(stdout);
    rows_.push_back(std::move(row));
  }

  void ceilings() {
    const index_t n = options_.tiny ? 4096 : index_t{1} << 28;
    Tensor from(*device, DType::f32, 1, n, MemoryKind::workspace);
    Tensor to(*device, DType::f32, 1, n, MemoryKind::workspace);
    const double copy =
        median_microseconds([&] { device->copy(to.view().data, from.view().data, 4 * n, *queue); });
    copy_rate_ = 8.0 * static_cast<double>(n) / copy * 1e-6;
    add({"ceiling", "copy of device memory, read + write", "driver", copy, copy_rate_, 100,
         "TB/s"});
    const index_t size = options_.tiny ? 64 : 8192;
    for (const Engine& engine : engines_) {
      const double time = gemm_time(*engine.ops, {size, size, size, false, true}, DType::bf16);
      const double rate = 2.0 * static_cast<double>(size * size * size) / time * 1e-6;
      product_rate_ = std::max(product_rate_, rate);
      add({"ceiling", fmt::format("bf16 product {0} x {0} x {0}", size), engine.name, time, rate,
           100, "TFLOP/s"});
    }
  }

  /// The case's own call over device memory.
  void time_case(const std::string& part, const OpCase& op, Ops& ops, const std::string& engine) {
    if (out_of_time()) return;
    std::vector<Buffer> buffers = op.make_buffers();
    std::vector<std::unique_ptr<test::OnDevice>> copies;
    for (Buffer& buffer : buffers) {
      copies.push_back(std::make_unique<test::OnDevice>(buffer.view(), 0));
      buffer.show_at(copies.back()->view().data);
    }
    const double time = median_microseconds([&] { op.call(ops, *queue, buffers); });
    const bool arithmetic = op.flops > 0 && part != "memory";
    const double rate = (arithmetic ? op.flops : op.bytes) / time * 1e-6;
    add({part, op.name, engine, time, rate, 100 * rate / (arithmetic ? product_rate_ : copy_rate_),
         arithmetic ? "TFLOP/s" : "TB/s"});
  }

  void memory_bound() {
    Ops& ops = *engines_.front().ops;
    const DType d = DType::bf16;
    const index_t rows = scaled(20480), wide = options_.tiny ? 64 : 1600;
    const index_t vocab = options_.tiny ? 320 : 50304, count = scaled(index_t{1} << 26);
    for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
      time_case("memory", norm_forward_case(kind, rows, wide, d), ops, "native");
      time_case("memory", norm_backward_case(kind, rows, wide, true, d), ops, "native");
    }
    time_case("memory", xent_stats_case(scaled(2048), vocab, 0, d), ops, "native");
    time_case("memory", xent_grad_case(scaled(2048), vocab, 0, d), ops, "native");
    time_case("memory", adamw_case(count, DType::f32), ops, "native");
    for (const index_t n : {2, 8}) {
      time_case("memory", gram_case(n, scaled(index_t{1} << 24), Cut::one, DType::f32), ops,
                "native");
      time_case("memory",
                combine_case(n, scaled(index_t{1} << 24), Cut::one, DType::f32, DType::f32), ops,
                "native");
    }
    time_case("memory", activation_forward_case(Activation::gelu_tanh, rows, 2 * wide, d), ops,
              "native");
    time_case("memory", activation_backward_case(Activation::gelu_tanh, rows, 2 * wide, d), ops,
              "native");
    time_case("memory", add_case(rows, wide, d, d), ops, "native");
    time_case("memory", copy_case(rows, wide, DType::f32, d), ops, "native");
    time_case("memory", column_sums_case(rows, wide, d), ops, "native");
    time_case("memory", sum_case(count, true, DType::f32), ops, "native");
    time_case("memory", embed_case(rows, wide, scaled(50304), d), ops, "native");
    time_case("memory", scatter_case(rows, wide, scaled(50304), d), ops, "native");
    time_case("memory", dropout_case(rows, wide, 0.1, d), ops, "native");
  }

  void attention() {
    const index_t length = options_.tiny ? 64 : 1024;
    for (const Engine& engine : engines_)
      for (const AttentionShape& s :
           {AttentionShape{options_.tiny ? 1 : 16, length, 12, 12, 64},
            AttentionShape{options_.tiny ? 1 : 16, length, 12, 12, 64, false},
            AttentionShape{options_.tiny ? 1 : 4, 2 * length, 16, 16, 128},
            AttentionShape{options_.tiny ? 1 : 4, 2 * length, 32, 8, 128}}) {
        time_case("attention", attention_forward_case(s, DType::bf16), *engine.ops, engine.name);
        time_case("attention", attention_backward_case(s, DType::bf16), *engine.ops, engine.name);
      }
  }

  double gemm_time(Ops& ops, const GemmShape& s, DType out) {
    const auto random = [&](index_t rows, index_t cols, DType dtype, std::uint64_t stream) {
      Tensor x(*device, dtype, rows, cols, MemoryKind::workspace);
      ops.random_init(*queue, x, {1, stream}, 0, 0, cols, 1.0);
      return x;
    };
    const Tensor a =
        s.transpose_a ? random(s.k, s.m, DType::bf16, 1) : random(s.m, s.k, DType::bf16, 1);
    const Tensor b =
        s.transpose_b ? random(s.n, s.k, DType::bf16, 2) : random(s.k, s.n, DType::bf16, 2);
    const Tensor c = random(s.m, s.n, out, 3), bias = random(1, s.n, DType::f32, 4);
    GemmArgs args{a, b, c, s.transpose_a, s.transpose_b, s.accumulate, {}};
    if (s.bias) args.bias = bias;
    return median_microseconds([&] { ops.gemm(*queue, args); });
  }

  void product(const std::string& what, const GemmShape& s, DType out) {
    for (const Engine& engine : engines_) {
      if (out_of_time()) return;
      const double time = gemm_time(*engine.ops, s, out);
      const double rate = 2.0 * static_cast<double>(s.m * s.n * s.k) / time * 1e-6;
      add({"product", fmt::format("{} {} x {} x {}", what, s.m, s.n, s.k), engine.name, time, rate,
           100 * rate / product_rate_, "TFLOP/s"});
    }
  }

  // The matmuls of a block of each GPT-2, and of the head.
  void products() {
    const index_t tokens = scaled(16384);
    for (const index_t hidden : {768, 1024, 1280, 1600}) {
      const index_t h = options_.tiny ? 64 : hidden;
      const index_t widths[][2] = {{3 * h, h}, {h, h}, {4 * h, h}, {h, 4 * h}};
      for (const auto& [n, k] : widths) {
        product("forward", {tokens, n, k, false, true, false, true}, DType::bf16);
        product("input gradient", {tokens, k, n, false, false}, DType::bf16);
        product("weight gradient", {n, k, tokens, true, false, true}, DType::f32);
      }
      product("head", {scaled(8192), options_.tiny ? 128 : 50257, h, false, true}, DType::bf16);
      if (options_.tiny) return;
    }
  }

  void write_json() {
    std::ofstream file(options_.json);
    file << "{\"rows\": [\n";
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const Row& r = rows_[i];
      file << fmt::format(
          "  {{\"part\": \"{}\", \"name\": \"{}\", \"engine\": \"{}\", \"microseconds\": {:.3f}, "
          "\"rate\": {:.4f}, \"unit\": \"{}\", \"percent\": {:.2f}}}{}\n",
          r.part, r.name, r.engine, r.microseconds, r.rate, r.unit, r.percent,
          i + 1 < rows_.size() ? "," : "");
    }
    file << "]}\n";
    if (!file) throw_error(ExitCode::io, "cannot write {}", options_.json);
  }

  Options options_;
  double start_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  std::vector<Engine> engines_;
  std::vector<Row> rows_;
  double copy_rate_ = 0, product_rate_ = 0;
};

}  // namespace
}  // namespace t3d::bench

int main(int count, char** values) {
  t3d::bench::Options options;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(values[i], "--tiny") == 0)
      options.tiny = true;
    else if (i + 1 < count && std::strcmp(values[i], "--json") == 0)
      options.json = values[++i];
    else if (i + 1 < count && std::strcmp(values[i], "--seconds") == 0)
      options.seconds = std::stod(values[++i]);
    else
      return fmt::print(stderr, "t3d_bench_gpu: unknown argument {}\n", values[i]), 64;
  }
  try {
    t3d::bench::Bench(options).run();
  } catch (const t3d::Error& error) {
    fmt::print(stderr, "t3d_bench_gpu: {}\n", error.what());
    return static_cast<int>(error.code());
  }
  return 0;
}
