// Time of aggregating replicas' gradients beside MPI_Allreduce of the same bytes. All ways take
// turns within a round, and what counts is the ratio within a round: other work on the machine
// slows neighbours alike.
//
//   mpirun -n 4 t3d_bench_aggregate [--rounds 9] [--bucket-mib 4] [--ways gram,flat] [MiB ...]
//
// Every rank is a replica of its own with gradients in fp32, in buckets of tensors that halve from
// 2 MiB down to 64 KiB. `MPI whole` sums one buffer in one call, `MPI buckets` bucket by bucket,
// with the settings of comm/mpi (no single copy by the kernel, waiting ranks yield).
#include "train/aggregate/aggregate.hpp"

#include <fmt/core.h>
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <sstream>
#include <string_view>

#include "comm/mpi/mpi_world.hpp"
#include "comm/placement.hpp"
#include "support/rank_context.hpp"

namespace t3d {
namespace {

constexpr index_t kMebi = index_t{1} << 20;

struct Options {
  int rounds = 9;
  index_t bucket_mib = 4;
  std::string ways;  // by comma; empty = all
  std::vector<index_t> sizes_mib;
  [[nodiscard]] bool wants(const std::string& way) const {
    return ways.empty() || ("," + ways + ",").find("," + way + ",") != std::string::npos;
  }
};

Options parse(int argc, char** argv) {
  Options options;
  for (int at = 1; at < argc; ++at) {
    const std::string_view word = argv[at];
    const char* next = at + 1 < argc ? argv[at + 1] : "";
    if (word == "--rounds")
      options.rounds = std::atoi(next);
    else if (word == "--bucket-mib")
      options.bucket_mib = std::atoi(next);
    else if (word == "--ways")
      options.ways = next;
    else
      options.sizes_mib.push_back(std::atoi(argv[at]));
    if (word.starts_with("--")) ++at;
  }
  if (options.sizes_mib.empty()) options.sizes_mib = {1, 4, 16, 64};
  return options;
}

/// Gradients of one replica, as a model of tensors without layers.
class Gradients {
 public:
  Gradients(const Context& context, index_t bytes, index_t bucket_bytes) : context_(context) {
    for (index_t at = 0; at < bytes; at += bucket_bytes)
      add_bucket(std::min(bucket_bytes, bytes - at) / 4);
    groups_.emplace(buckets_, GroupBy::tensor);
    whole_ = context.make(DType::f32, 1, bytes / 4, MemoryKind::gradients);
    refill();
  }
  [[nodiscard]] const std::vector<ParamBucket*>& buckets() const { return buckets_; }
  [[nodiscard]] const ParamGroups& groups() const { return *groups_; }
  [[nodiscard]] TensorView shard(std::size_t bucket) const { return shards_[bucket]; }
  [[nodiscard]] TensorView whole() const { return whole_; }

  /// The same numbers before every call, as the calls are in place.
  void refill() {
    for (std::size_t at = 0; at < shards_.size(); ++at)
      context_.ops.copy(context_.queue, fresh_[at], shards_[at].view());
    index_t begin = 0;
    for (const Tensor& fresh : fresh_) {
      context_.ops.copy(context_.queue, fresh, whole_.view().col_range(begin, fresh.cols()));
      begin += fresh.cols();
    }
  }

 private:
  void add_bucket(index_t count) {
    constexpr index_t kLeast = (index_t{64} << 10) / 4;
    const auto number = static_cast<index_t>(owned_.size());
    BucketTable table(fmt::format("{}", number), Group::i, false);
    for (index_t left = count; left > 0;) {
      const index_t size = left > 2 * kLeast ? left / 2 : std::min(left, kLeast);
      table.add({fmt::format("{}.{}", number, count - left),
                 1,
                 size,
                 true,
                 false,
                 {},
                 {{0, 0, 1, size}},
                 0});
      left -= size;
    }
    cut_shards(table, context_.mesh.shape(), context_.mesh.coord(),
               Partition::even("storage", 1, 1));
    owned_.push_back(
        std::make_unique<ParamBucket>(context_, context_.mesh.along(Axis::i), std::move(table)));
    buckets_.push_back(owned_.back().get());
    const auto seed = static_cast<std::uint64_t>(context_.control.rank());
    fresh_.push_back(context_.make(DType::f32, 1, count, MemoryKind::gradients));
    context_.ops.random_init(context_.queue, fresh_.back(), {seed, stream_of("bench")}, 0,
                             number * count, count, 1);
    shards_.push_back(context_.make(DType::f32, 1, count, MemoryKind::gradients));
  }

  const Context& context_;
  std::vector<std::unique_ptr<ParamBucket>> owned_;
  std::vector<ParamBucket*> buckets_;
  std::optional<ParamGroups> groups_;
  std::vector<Tensor> fresh_, shards_;
  Tensor whole_;
};

void mpi_sum(TensorView x) {
  MPI_Allreduce(MPI_IN_PLACE, x.data, static_cast<int>(x.count()), MPI_FLOAT, MPI_SUM,
                MPI_COMM_WORLD);
}

struct Way {
  std::string name;
  std::function<void()> run;
  std::unique_ptr<Plan> plan = nullptr;
  std::unique_ptr<Aggregation> aggregation = nullptr;
  std::vector<double> seconds = {};  // by round
};

class Bench {
 public:
  Bench(Communicator& world, const Options& options)
      : world_(world),
        options_(options),
        rank_(world, {world.size(), 1, 1, 1}, DType::f32, false),
        leaves_{world.size(), 1, std::vector<double>(static_cast<std::size_t>(world.size()), 1)} {}

  void run(index_t mib) {
    Gradients gradients(rank_.context, mib * kMebi, std::min(mib, options_.bucket_mib) * kMebi);
    std::vector<Way> ways = ways_of(gradients);
    for (int round = -1; round < options_.rounds; ++round)
      for (Way& way : ways) {
        gradients.refill();
        const double seconds = time(way.run);
        if (round >= 0) way.seconds.push_back(seconds);  // the first one meets fresh pages
      }
    if (world_.rank() == 0) print(mib, ways);
  }

 private:
  [[nodiscard]] std::vector<Way> ways_of(Gradients& gradients) {
    std::vector<Way> ways;
    ways.push_back({"MPI whole", [&] { mpi_sum(gradients.whole()); }});
    if (options_.wants("mpi"))
      ways.push_back({"MPI buckets", [&] {
                        for (std::size_t at = 0; at < gradients.buckets().size(); ++at)
                          mpi_sum(gradients.shard(at));
                      }});
    const auto add = [&](const std::string& name, AggregateMethod method,
                         AggregateAlgorithm algorithm, WireType wire) {
      if (!options_.wants(name)) return;
      Way way{name, {}};
      way.plan = std::make_unique<Plan>();
      way.plan->ranks = world_.size();
      way.plan->replicas.resize(static_cast<std::size_t>(world_.size()));
      way.plan->aggregate.method = method;
      way.plan->aggregate.placement = AggregatePlacement::pre;
      way.plan->aggregate.algorithm = algorithm;
      way.plan->aggregate.wire = wire;
      way.aggregation = make_aggregation(
          {rank_.context, *way.plan, gradients.buckets(), gradients.groups(), leaves_, 0});
      way.run = [&gradients, aggregation = way.aggregation.get()] {
        for (std::size_t at = 0; at < gradients.buckets().size(); ++at)
          aggregation->start(at, gradients.shard(at));
        aggregation->finish(1);
      };
      ways.push_back(std::move(way));
    };
    using enum AggregateAlgorithm;
    add("mean", AggregateMethod::mean, automatic, WireType::fp32);
    add("gram", AggregateMethod::adasum, gram, WireType::fp32);
    add("gram-bf16", AggregateMethod::adasum, gram, WireType::bf16);
    add("flat", AggregateMethod::adasum, flat, WireType::fp32);
    return ways;
  }

  /// The slowest rank's.
  double time(const std::function<void()>& call) {
    world_.barrier();
    const double start = PhaseClock::now();
    call();
    double seconds = PhaseClock::now() - start;
    world_.all_reduce({&seconds, DType::f64, 1, 1}, ReduceOp::max).wait_host();
    return seconds;
  }

  static double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
    return values[values.size() / 2];
  }

  // Milliseconds, and the ratio to the first way of the same round: median (lower to upper
  // quartile).
  static void print(index_t mib, const std::vector<Way>& ways) {
    for (const Way& way : ways) {
      std::vector<double> ratios;
      for (std::size_t at = 0; at < way.seconds.size(); ++at)
        ratios.push_back(way.seconds[at] / ways.front().seconds[at]);
      std::sort(ratios.begin(), ratios.end());
      const std::size_t quarter = ratios.size() / 4;
      fmt::print("{:>5} {:<12} {:>9.2f} {:>8.2f}   {:.2f} - {:.2f}\n", mib, way.name,
                 median(way.seconds) * 1e3, median(ratios), ratios[quarter],
                 ratios[ratios.size() - 1 - quarter]);
    }
    std::fflush(stdout);
  }

  Communicator& world_;
  Options options_;
  test::RankContext rank_;
  Leaves leaves_;
};

}  // namespace
}  // namespace t3d

int main(int argc, char** argv) {
  const t3d::MpiSession session(argc, argv);
  const t3d::Options options = t3d::parse(argc, argv);
  const auto world = t3d::make_mpi_world();
  if (world->rank() == 0)
    fmt::print(
        "# {} ranks, {} cores, {} rounds, buckets of {} MiB\n{:>5} {:<12} {:>9} {:>8}   {}\n",
        world->size(), t3d::cores_available(), options.rounds, options.bucket_mib, "MiB", "way",
        "ms", "ratio", "quartiles");
  t3d::Bench bench(*world, options);
  for (const t3d::index_t mib : options.sizes_mib) bench.run(mib);
  return 0;
}
