// Speed of every verb of the cpu back end: GF/s where arithmetic counts, GB/s where memory does.
//   t3d_bench_ops [threads] [part of a name]
// Each line is the best of repeated calls within a third of a second.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>

#include "ops/op_case.hpp"

namespace t3d::ops_test {
namespace {

constexpr index_t kTokens = 1024, kHidden = 768, kWide = 3072, kVocabulary = 50257;

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double best_time(Ops& ops, const OpCase& op) {
  Queue queue;
  auto buffers = op.make_buffers();
  op.call(ops, queue, buffers);
  double best = 1e30;
  const double begin = seconds();
  for (int i = 0; i < 3 || (i < 1000 && seconds() - begin < 0.35); ++i) {
    const double start = seconds();
    op.call(ops, queue, buffers);
    best = std::min(best, seconds() - start);
  }
  return best;
}

void print_speed(Ops& ops, const OpCase& op, const std::string& filter) {
  if (op.name.find(filter) == std::string::npos) return;
  const double time = best_time(ops, op);
  const bool arithmetic = op.flops > 0;
  fmt::print("{:55} {:10.3f} ms {:8.1f} {}\n", op.name, time * 1e3,
             (arithmetic ? op.flops : op.bytes) / time * 1e-9, arithmetic ? "GF/s" : "GB/s");
  std::fflush(stdout);
}

void run_matrix(Ops& ops, const std::string& filter, DType d) {
  const index_t shapes[][2] = {{3 * kHidden, kHidden},
                               {kHidden, kHidden},
                               {kWide, kHidden},
                               {kHidden, kWide},
                               {kVocabulary, kHidden}};
  for (const auto& [n, k] : shapes) {
    print_speed(ops, gemm_case({kTokens, n, k, false, true}, d, d), filter);
    print_speed(ops, gemm_case({kTokens, n, k, false, true, false, true}, d, d), filter);
    print_speed(ops, gemm_case({kTokens, k, n}, d, d), filter);
    print_speed(ops, gemm_case({n, k, kTokens, true, false, true}, d, DType::f32), filter);
  }
  for (const AttentionShape& s :
       {AttentionShape{1, kTokens, 12, 12, 64}, AttentionShape{1, kTokens, 12, 12, 64, false},
        AttentionShape{1, kTokens, 12, 4, 64}, AttentionShape{1, kTokens, 6, 6, 128},
        AttentionShape{16, 64, 12, 12, 64}}) {
    print_speed(ops, attention_forward_case(s, d), filter);
    print_speed(ops, attention_backward_case(s, d), filter);
  }
}

void run_vector(Ops& ops, const std::string& filter, DType d) {
  const auto print = [&](const OpCase& op) { print_speed(ops, op, filter); };
  print(rope_case(kTokens, kTokens, 12, 64, false, d));
  for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
    print(norm_forward_case(kind, kTokens, kHidden, d));
    print(norm_backward_case(kind, kTokens, kHidden, true, d));
  }
  for (const Activation kind : {Activation::gelu_tanh, Activation::swiglu}) {
    print(activation_forward_case(kind, kTokens, kWide, d));
    print(activation_backward_case(kind, kTokens, kWide, d));
  }
  print(embed_case(kTokens, kHidden, kVocabulary, d));
  print(scatter_case(kTokens, kHidden, kVocabulary, d));
  print(positions_case(kTokens, kHidden, kTokens, 0, d));
  print(xent_stats_case(kTokens, kVocabulary, 0, d));
  print(xent_grad_case(kTokens, kVocabulary, 0, d));
  print(fill_case(kTokens, kWide, d));
  print(copy_case(kTokens, kWide, d, DType::f32));
  print(copy_case(kTokens, kWide, DType::f32, d));
  print(add_case(kTokens, kWide, d, d));
  print(scale_case(kTokens, kWide, d));
  print(column_sums_case(kTokens, kWide, d));
  print(dropout_case(kTokens, kWide, 0.1, d));
  print(random_init_case(kTokens, kWide, d));
  const index_t parameters = index_t{1} << 24;
  print(sum_case(parameters, false, d));
  print(sum_case(parameters, true, d));
  print(adamw_case(parameters, d));
  print(sgd_case(parameters, false, d));
}

}  // namespace
}  // namespace t3d::ops_test

int main(int count, char** values) {
  const int threads = count > 1 ? std::atoi(values[1]) : 1;
  const std::string filter = count > 2 ? values[2] : "";
  const auto ops = t3d::make_cpu_ops(threads);
  for (const t3d::DType dtype : {t3d::DType::f32, t3d::DType::bf16}) {
    t3d::ops_test::run_matrix(*ops, filter, dtype);
    t3d::ops_test::run_vector(*ops, filter, dtype);
  }
  return 0;
}
