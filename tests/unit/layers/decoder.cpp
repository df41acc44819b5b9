// Text token by token with kept keys and values: the same logits as from the whole text at once, on
// every cuboid, for every kind of model; and on one rank the same to the bit whatever else is in
// the batch.
#include "layers/decoder.hpp"

#include <cmath>
#include <mutex>

#include "support/catch.hpp"
#include "support/model_rig.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

constexpr index_t kVocab = 61;
using Logits = std::vector<float>;

/// Weights far enough from 0 that tokens and their order matter.
double weight(const std::string& name, index_t index) {
  const RandomKey key{21, stream_of(name)};
  return (name.find("norm") != std::string::npos ? 1.0 : 0.0) + 0.3 * random_normal(key, index);
}

std::vector<std::int32_t> text_of(index_t number, index_t length) {
  std::vector<std::int32_t> ids;
  for (index_t at = 0; at < length; ++at)
    ids.push_back(
        static_cast<std::int32_t>(random_bits({22, static_cast<std::uint64_t>(number)}, at) %
                                  static_cast<std::uint32_t>(kVocab)));
  return ids;
}

/// Runs `body` with the model on every rank of a cuboid.
void with_model(Config config, const Grid& grid, AttentionRule attention,
                const std::function<void(Transformer&, const Formation&, bool first)>& body) {
  set_grid(config, grid);
  config.mesh.attention = attention;
  run_local_ranks(grid.ranks(), [&](Communicator& world) {
    Machine machine(world, test_machine(config));
    const Formation formation(machine, plan_of(config, machine), config.optimizer);
    Transformer& model = formation.model();
    model.allocate();
    set_weights(model, weight);
    body(model, formation, world.rank() == 0);
  });
}

/// Logits after each token of the whole text at once, nothing kept.
std::vector<Logits> without_cache(const Config& config, std::vector<std::int32_t> ids) {
  const auto count = ids.size();
  ids.resize(static_cast<std::size_t>(config.model.context), 0);
  std::vector<Logits> result;
  with_model(config, {}, AttentionRule::automatic, [&](Transformer& model, auto&, bool) {
    PassInfo pass;
    pass.length = config.model.context;
    HeadLoss::RowsOfSlabs rows(1);
    for (std::size_t at = 0; at < count; ++at) rows[0].push_back(static_cast<index_t>(at));
    const Logits all = model.logits(ids, model.shape().tokens(1, pass.length), pass, rows);
    for (auto row = all.begin(); row != all.end(); row += kVocab)
      result.emplace_back(row, row + kVocab);
  });
  return result;
}

double difference(const float* got, const Logits& want) {
  double worst = 0;
  for (std::size_t at = 0; at < want.size(); ++at)
    worst = std::max(worst, std::abs(static_cast<double>(got[at]) - static_cast<double>(want[at])));
  return worst;
}

struct Sequence {
  index_t slot, prompt, length;  // tokens of the prompt, and in all
};
// Of different lengths, out of order, one slot used twice, one prompt of a single token.
const std::vector<Sequence> kFirst{{3, 5, 12}, {0, 1, 9}, {1, 16, 16}, {4, 7, 10}};
const std::vector<Sequence> kSecond{{0, 3, 8}, {2, 9, 16}};

/// Reads and goes on with all sequences of a batch together; the worst difference from `want`.
double run_batch(Decoder& decoder, const std::vector<Sequence>& batch,
                 const std::vector<std::vector<Logits>>& want) {
  double worst = 0;
  std::vector<Decoder::Prompt> prompts;
  for (const Sequence& s : batch) prompts.push_back({s.slot, text_of(s.length, s.prompt)});
  const auto compare = [&](const Logits& got, const std::vector<std::size_t>& of, index_t step) {
    for (std::size_t row = 0; row < of.size(); ++row) {
      const Sequence& s = batch[of[row]];
      worst =
          std::max(worst, difference(got.data() + row * kVocab,
                                     want[of[row]][static_cast<std::size_t>(s.prompt - 1 + step)]));
    }
  };
  std::vector<std::size_t> all;
  for (std::size_t at = 0; at < batch.size(); ++at) all.push_back(at);
  compare(decoder.read(prompts), all, 0);
  for (index_t step = 1; !all.empty(); ++step) {
    std::erase_if(all, [&](std::size_t at) { return batch[at].prompt + step > batch[at].length; });
    std::vector<Decoder::Next> next;
    for (const std::size_t at : all)
      next.push_back(
          {batch[at].slot,
           text_of(batch[at].length,
                   batch[at].length)[static_cast<std::size_t>(batch[at].prompt + step - 1)]});
    if (!next.empty()) compare(decoder.go_on(next), all, step);
  }
  return worst;
}

void check_grid(const Config& config, const Grid& grid, AttentionRule attention) {
  std::vector<std::vector<Logits>> first, second;
  for (const Sequence& s : kFirst)
    first.push_back(without_cache(config, text_of(s.length, s.length)));
  for (const Sequence& s : kSecond)
    second.push_back(without_cache(config, text_of(s.length, s.length)));
  std::mutex mutex;
  double worst = 0;
  with_model(config, grid, attention, [&](Transformer& model, const Formation& formation, bool) {
    Decoder decoder(formation.context(), model, 5, config.model.context);
    const double own =
        std::max(run_batch(decoder, kFirst, first), run_batch(decoder, kSecond, second));
    const std::lock_guard lock(mutex);
    worst = std::max(worst, std::isnan(own) ? INFINITY : own);
  });
  INFO(grid.text() << " attention " << attention);
  CHECK(worst <= 1e-5);
}

}  // namespace

TEST_CASE("kept keys and values give the logits of the whole text") {
  for (const Config& config : {tiny_gpt(), tiny_llama(), tiny_qwen2(), tiny_qwen3()}) {
    for (const Grid& grid : all_grids()) check_grid(config, grid, AttentionRule::automatic);
    check_grid(config, {2, 2, 2, {}, {}, {}}, AttentionRule::sequences);
    check_grid(config, {1, 2, 2, {}, {}, {}}, AttentionRule::heads);
  }
}
