// What a plan must be, whoever wrote it: everything that divides, allocates or indexes by its
// numbers relies on this.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/plan.hpp"

namespace t3d {
namespace {

constexpr index_t kMostSequences = index_t{1} << 40;  // of a micro-batch

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
  throw_error(ExitCode::config, "the plan does not fit: {}",
              fmt::format(text, std::forward<Args>(args)...));
}

void check_model(const ModelConfig& m) {
  for (const auto& [name, value] : {std::pair{"layers", m.layers},
                                    {"hidden", m.hidden},
                                    {"heads", m.heads},
                                    {"kv_heads", m.kv_heads},
                                    {"ffn", m.ffn},
                                    {"vocab", m.vocab},
                                    {"context", m.context}})
    if (value < 1) refuse("model.{} is {}", name, value);
  if (m.head_columns < 0 || (m.head_columns == 0 && m.hidden % m.heads != 0) ||
      m.heads % m.kv_heads != 0)
    refuse("{} hidden, {} heads of {}, {} key-value heads", m.hidden, m.heads, m.head_columns,
           m.kv_heads);
  for (const auto& [name, value] : {std::pair{"rope_base", m.rope.base},
                                    {"rope_factor", m.rope.factor},
                                    {"rope_low_freq_factor", m.rope.low_freq_factor},
                                    {"rope_high_freq_factor", m.rope.high_freq_factor},
                                    {"rope_beta_fast", m.rope.beta_fast},
                                    {"rope_beta_slow", m.rope.beta_slow},
                                    {"rope_attention_factor", m.rope.attention_factor},
                                    {"norm_eps", m.norm_eps},
                                    {"init_std", m.init_std}})
    if (!std::isfinite(value) || value < 0) refuse("model.{} is {}", name, value);
  const LoraOptions& lora = m.lora;
  if (lora.rank < 0 || !std::isfinite(lora.alpha) || lora.alpha < 0)
    refuse("lora.rank is {}, lora.alpha {}", lora.rank, lora.alpha);
  for (const std::string& target : lora.targets)
    if (std::find(std::begin(kLoraTargets), std::end(kLoraTargets), target) ==
        std::end(kLoraTargets))
      refuse("lora.targets has {}", target);
  if (!(m.dropout >= 0 && m.dropout < 1)) refuse("model.dropout is {}", m.dropout);
}

/// The cuboids fit into the ranks, so that nothing is counted in vain.
void check_extents(const Plan& plan) {
  if (plan.ranks > kMostRanks) refuse("it is for {} ranks, at most {}", plan.ranks, kMostRanks);
  index_t left = plan.ranks;
  for (const ReplicaPlan& replica : plan.replicas) {
    index_t size = 1;
    for (const index_t extent : replica.cuboid) {
      if (extent < 1 || extent > left / size)
        refuse("its cuboids are larger than {} ranks, or empty", plan.ranks);
      size *= extent;
    }
    left -= size;
  }
}

/// What of one replica does not fit.
class ReplicaCheck {
 public:
  ReplicaCheck(const Plan& plan, index_t d) : plan_(plan), replica_(plan.replica(d)), d_(d) {}

  void run() const {
    const auto& [p, q, r] = replica_.cuboid;
    cut(replica_.hidden, plan_.model.hidden, r, "hidden");
    cut(replica_.groups, plan_.model.kv_heads, q, "groups");
    cut(replica_.ffn, plan_.model.ffn, q, "ffn");
    cut(replica_.vocab, plan_.model.vocab, q, "vocab");
    cut(replica_.storage, replica_.storage.length(), p, "storage");
    if (replica_.storage.length() < 1) fail("storage holds nothing");
    check_whole();
    if (std::ssize(replica_.leaves) != plan_.leaves_per_replica())
      fail(fmt::format("{} leaves", replica_.leaves.size()));
    index_t last = 0;
    for (const Partition& tokens : replica_.tokens) {
      cut(tokens, tokens.length(), p, "tokens");
      if (tokens.length() <= last || tokens.length() > kMostSequences)
        fail(fmt::format("tokens cuts {} sequences after {}", tokens.length(), last));
      last = tokens.length();
    }
    if (last == 0) fail("tokens cuts nothing");
    for (const auto& leaf : replica_.leaves)
      for (const index_t micro : leaf) listed(micro);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { refuse("replica {}: {}", d_, what); }
  void cut(const Partition& cut, index_t length, index_t parts, const char* name) const {
    if (cut.parts() != parts || cut.length() != length)
      fail(fmt::format("{} is cut in {} parts of {}; needed are {} of {}", name, cut.parts(),
                       cut.length(), parts, length));
  }
  void check_whole() const {
    const std::vector<index_t>& whole = replica_.whole;
    if (whole.empty()) return;
    const auto& [p, q, r] = replica_.cuboid;
    if (std::ssize(whole) != p * q * r)
      fail(fmt::format("whole has {} speeds for {} ranks", whole.size(), p * q * r));
    const auto [least, most] = std::minmax_element(whole.begin(), whole.end());
    if (*least < 0 || *most == 0) fail("a speed of whole is negative, or all are 0");
  }
  void listed(index_t micro) const {
    const bool there = std::any_of(replica_.tokens.begin(), replica_.tokens.end(),
                                   [&](const Partition& cut) { return cut.length() == micro; });
    if (micro < 1 || !there) fail(fmt::format("a micro-batch of {} sequences has no cut", micro));
  }

  const Plan& plan_;
  const ReplicaPlan& replica_;
  index_t d_;
};

void check_places(const Plan& plan) {
  const MeshShape shape = plan.mesh();  // no rank twice
  const std::vector<int> all = plan.active();
  if (std::ssize(all) != shape.ranks())
    refuse("{} ranks have a place in cuboids of {}", all.size(), shape.ranks());
  if (all.front() < 0 || all.back() >= plan.ranks)
    refuse("rank {} has a place, and there are {} ranks",
           all.front() < 0 ? all.front() : all.back(), plan.ranks);
}

void check_aggregation(const Plan& plan) {
  const AggregateConfig& a = plan.aggregate;
  if (!(a.reference_batch > 0) || !std::isfinite(a.reference_batch))
    refuse("the reference batch is {}", a.reference_batch);
  if (a.placement == AggregatePlacement::automatic || a.algorithm == AggregateAlgorithm::automatic)
    refuse("aggregation is not decided");
  if (!(a.gain_exponent >= -1 && a.gain_exponent <= 1))
    refuse("aggregate.gain_exponent is {}", a.gain_exponent);
  const bool adasum = a.method == AggregateMethod::adasum;
  const index_t leaves = plan.leaves_per_replica();
  if (!adasum && leaves > 1) refuse("{} leaves per replica are for adasum only", leaves);
  // More where whole leaves have moved from one replica to another; those that left are empty.
  const std::vector<double> weights = plan.leaf_weights();
  const auto filled = std::count_if(weights.begin(), weights.end(), [](double w) { return w > 0; });
  if (adasum && (leaves < a.leaves || filled > a.leaves * std::ssize(plan.replicas)))
    refuse("its replicas have {} leaves, and aggregate.leaves is {}", leaves, a.leaves);
  if (adasum && leaves * std::ssize(plan.replicas) > kMostLeaves)
    refuse(
        "mesh.replicas = {} with aggregate.leaves = {}; adasum combines at most {} leaves in all",
        plan.replicas.size(), leaves, kMostLeaves);
  const bool flat = adasum && a.algorithm == AggregateAlgorithm::flat;
  if (flat && (!plan.alike() || leaves > 1))
    refuse("flat aggregation needs replicas that are cut alike, with one leaf each");
}

}  // namespace

void Plan::check() const {
  if (replicas.empty()) refuse("it has no replicas");
  check_model(model);
  if (optimizer == OptimizerKind::muon && (model.lora.on() || !model.freeze.empty()))
    refuse("muon does not train parts of a model");
  check_extents(*this);
  check_places(*this);
  for (index_t d = 0; d < std::ssize(replicas); ++d)
    if (d == 0 || replica(d) != replica(d - 1)) ReplicaCheck(*this, d).run();
  if (sequences() < 1) refuse("it has no sequences");
  if (logits_bytes < 1) refuse("logits_bytes is {}", logits_bytes);
  check_aggregation(*this);
}

}  // namespace t3d
