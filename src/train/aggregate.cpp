#include "train/aggregate.hpp"

#include "comm/cost.hpp"
#include "core/error.hpp"

namespace t3d {
namespace {

class Mean final : public Aggregation {
 public:
  explicit Mean(const Context& context) : context_(context) {}

  void run(const std::vector<ParamBucket*>& buckets, double weight) override {
    Communicator& replicas = context_.mesh.along(Axis::d);
    if (replicas.size() == 1) return;
    const PhaseClock::Scope scope(context_.clock, "aggregate");
    std::vector<Work> works;
    for (ParamBucket* bucket : buckets) {
      context_.ops.scale(context_.queue, bucket->gradient_shard(), weight);
      works.push_back(replicas.all_reduce(bucket->gradient_shard(), ReduceOp::sum));
    }
    for (Work& work : works) work.wait(context_.queue);
  }

  void predict(Ledger& ledger, const std::vector<ParamBucket*>& buckets) const override {
    const int n = static_cast<int>(context_.extent(Axis::d));
    const int rank = static_cast<int>(context_.coord(Axis::d));
    for (const ParamBucket* bucket : buckets)
      ledger.count(Verb::all_reduce, "d",
                   all_reduce_bytes(bucket->shard_count(), n, rank, context_.accumulator()));
  }

 private:
  const Context& context_;
};

}  // namespace

std::unique_ptr<Aggregation> make_aggregation(const Context& context,
                                              const AggregateConfig& options) {
  T3D_CHECK(options.method == "mean", "aggregation {}", options.method);
  return std::make_unique<Mean>(context);
}

}  // namespace t3d
