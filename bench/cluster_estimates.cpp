// Estimates of a measured cluster.toml: errors for shapes that are left out, for those whose
// extents are at least so large, and nanoseconds of a call.
//
//   t3d_bench_cluster_estimates cluster.toml
//   t3d_bench_cluster_estimates cluster.toml ROWS HIDDEN FFN VOCAB LAYERS
//
// The second one prints the products of a GPT's step on one rank, to be compared with the matmul
// curve of `transformer3d probe` for such an input.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/error.hpp"
#include "core/phase_clock.hpp"
#include "core/random.hpp"
#include "forecast/cluster/cluster_file.hpp"
#include "forecast/cluster/operator_estimator.hpp"
#include "tools/calibrate/calibrate_report.hpp"

namespace t3d {
namespace {

void print_by_least_extent(const NodeClass& one) {
  for (const OperatorTable& table : one.operators) {
    if (table.kind != OperatorKind::matmul) continue;
    const auto errors = leave_one_out(
        table.samples, form_of(table.kind),
        [](std::span<const double> shape) { return term_counts(OperatorKind::matmul, shape); },
        [](std::span<const double> shape) { return place_of(OperatorKind::matmul, shape); });
    for (const double least : {16.0, 64.0, 128.0, 256.0}) {
      double sum = 0;
      std::vector<double> kept;
      for (std::size_t at = 0; at < errors.size(); ++at) {
        const auto& shape = table.samples[at].shape;
        if (std::min({shape[0], shape[1], shape[2]}) < least) continue;
        kept.push_back(errors[at]);
        sum += errors[at];
      }
      if (kept.empty()) continue;
      std::sort(kept.begin(), kept.end());
      fmt::print(
          "matmul {} of {}, extents of at least {}: {} shapes, median {:.1f} %, mean {:.1f} %\n",
          word_of(table.format), one.name, least, kept.size(), 100 * kept[kept.size() / 2],
          100 * sum / static_cast<double>(kept.size()));
    }
  }
}

void print_speed(const NodeClass& one) {
  constexpr int kCalls = 1000000, kShapes = 4096;
  const auto estimator = std::make_shared<OperatorEstimator>(one);
  CachedEstimator cached(estimator);
  std::vector<MatmulShape> shapes;
  for (index_t at = 0; at < kShapes; ++at) {
    const auto extent = [&](std::uint64_t which) {
      return static_cast<index_t>(16 + 8000 * random_uniform({which, 1}, at));
    };
    shapes.push_back({extent(1), extent(2), extent(3), at % 3 == 0, at % 3 == 1});
  }
  const auto time = [&](const auto& ask) {
    const double start = PhaseClock::now();
    double sum = 0;
    for (int call = 0; call < kCalls; ++call)
      sum += ask(shapes[static_cast<std::size_t>(call % kShapes)]);
    const double each = (PhaseClock::now() - start) / kCalls;
    return sum > 0 ? each : 0;
  };
  fmt::print("a matmul's seconds: {:.0f} ns; remembered: {:.0f} ns\n",
             1e9 * time([&](const MatmulShape& shape) {
               return estimator->matmul_seconds(ComputeType::fp32, shape);
             }),
             1e9 * time([&](const MatmulShape& shape) {
               return cached.matmul_seconds(ComputeType::fp32, shape);
             }));
}

/// Seconds of all products of a step with so many rows: four linears of each block, and the head.
double step_products(const OperatorEstimator& estimator, index_t rows, index_t hidden, index_t ffn,
                     index_t vocab, index_t layers) {
  const auto linear = [&](index_t out, index_t in) {
    const auto seconds = [&](const MatmulShape& shape) {
      return estimator.matmul_seconds(ComputeType::fp32, shape);
    };
    return seconds({rows, out, in, false, true}) + seconds({rows, in, out, false, false}) +
           seconds({out, in, rows, true, false});
  };
  const double block = linear(3 * hidden, hidden) + linear(hidden, hidden) + linear(ffn, hidden) +
                       linear(hidden, ffn);
  return static_cast<double>(layers) * block + linear(vocab, hidden);
}

}  // namespace
}  // namespace t3d

int main(int argc, char** argv) {
  if (argc != 2 && argc != 7) return 64;
  try {
    const t3d::Cluster cluster = t3d::load_cluster(argv[1]);
    if (argc == 7) {
      const auto number = [&](int at) { return t3d::index_t{std::atoll(argv[at])}; };
      for (const t3d::NodeClass& one : cluster.classes)
        fmt::print("{}: {:.6f} s of products in a step\n", one.name,
                   t3d::step_products(t3d::OperatorEstimator(one), number(2), number(3), number(4),
                                      number(5), number(6)));
      return 0;
    }
    fmt::print("{}", t3d::calibrate_report(cluster, {}));
    for (const t3d::NodeClass& one : cluster.classes) {
      t3d::print_by_least_extent(one);
      t3d::print_speed(one);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
