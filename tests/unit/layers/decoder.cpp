// Text token by token with kept keys and values: the same logits as from the whole text at once, on
// every cuboid, for every kind of model; and on one rank the same to the bit whatever else is in
// the batch.
#include "layers/decoder.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <set>

#include "support/catch.hpp"
#include "support/training.hpp"

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

using Weights = std::function<double(const std::string&, index_t)>;

/// The weights of a model that has learned something, so that texts go on and on in other words.
Weights trained_weights(Config config) {
  config.optimizer.lr = 1e-2;
  set_grid(config, {});
  const auto tensors = std::make_shared<GlobalTensors>();
  run_local_ranks(1, [&](Communicator& world) {
    Machine machine(world, test_machine(config));
    Trainer trainer(machine, plan_of(config, machine), test_options(config, 60), corpus(config));
    for (index_t step = 0; step < 60; ++step) (void)trainer.step(kNoFlag);
    collect(trainer.formation().model(), false, *tensors);
  });
  return [tensors](const std::string& name, index_t index) {
    return tensors->values.at(name)[static_cast<std::size_t>(index)];
  };
}

/// Runs `body` with the model on every rank of a cuboid.
void with_model(Config config, const Grid& grid, AttentionRule attention, int threads,
                const std::function<void(Transformer&, const Formation&)>& body,
                const Weights& values = weight) {
  set_grid(config, grid);
  config.mesh.attention = attention;
  run_local_ranks(grid.ranks(), [&](Communicator& world) {
    MachineOptions options = test_machine(config);
    options.threads = threads;
    Machine machine(world, options);
    const Formation formation(machine, plan_of(config, machine), config.optimizer);
    Transformer& model = formation.model();
    model.allocate();
    set_weights(model, values);
    body(model, formation);
  });
}

/// Logits after each token of the whole text at once, nothing kept.
std::vector<Logits> without_cache(const Config& config, std::vector<std::int32_t> ids,
                                  const Weights& values = weight) {
  const auto count = ids.size();
  ids.resize(static_cast<std::size_t>(config.model.context), 0);
  std::vector<Logits> result;
  with_model(
      config, {}, AttentionRule::automatic, 1,
      [&](Transformer& model, auto&) {
        PassInfo pass;
        pass.length = config.model.context;
        HeadLoss::RowsOfSlabs rows(1);
        for (std::size_t at = 0; at < count; ++at) rows[0].push_back(static_cast<index_t>(at));
        const Logits all = model.logits(ids, model.shape().tokens(1, pass.length), pass, rows);
        for (auto row = all.begin(); row != all.end(); row += kVocab)
          result.emplace_back(row, row + kVocab);
      },
      values);
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

/// Logits of the sequences' texts, nothing kept.
std::vector<std::vector<Logits>> wanted(const Config& config, const std::vector<Sequence>& batch) {
  std::vector<std::vector<Logits>> result;
  for (const Sequence& s : batch)
    result.push_back(without_cache(config, text_of(s.length, s.length)));
  return result;
}

struct Wanted {
  std::vector<std::vector<Logits>> first, second;
};

void check_grid(const Config& config, const Wanted& want, const Grid& grid,
                AttentionRule attention) {
  std::mutex mutex;
  double worst = 0;
  with_model(config, grid, attention, 1, [&](Transformer& model, const Formation& formation) {
    Decoder decoder(formation.context(), model, 5, config.model.context);
    const double own =
        std::max(run_batch(decoder, kFirst, want.first), run_batch(decoder, kSecond, want.second));
    const std::lock_guard lock(mutex);
    worst = std::max(worst, std::isnan(own) ? INFINITY : own);
  });
  INFO(grid.text() << " attention " << attention);
  CHECK(worst <= 1e-5);
}

/// One row on the host for every token of the text from the end of the prompt on.
std::vector<Logits> read_alone(Decoder& decoder, index_t slot, const std::vector<std::int32_t>& ids,
                               std::size_t prompt) {
  std::vector<Logits> result;
  result.push_back(decoder.read(std::vector<Decoder::Prompt>{
      {slot, {ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(prompt)}}}));
  for (std::size_t at = prompt; at < ids.size(); ++at)
    result.push_back(decoder.go_on(std::vector<Decoder::Next>{{slot, ids[at]}}));
  return result;
}

/// The same text in the middle of others, which begin before and after it and end at other times.
std::vector<Logits> read_among_others(Decoder& decoder, const std::vector<std::int32_t>& ids,
                                      std::size_t prompt) {
  using Prompts = std::vector<Decoder::Prompt>;
  (void)decoder.read(Prompts{{4, text_of(7, 3)}, {0, text_of(8, 9)}});
  (void)decoder.go_on(std::vector<Decoder::Next>{{0, 7}, {4, 11}});
  const Prompts together{{1, text_of(9, 2)},
                         {2, {ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(prompt)}},
                         {3, text_of(6, 12)}};
  std::vector<Logits> result;
  const auto take = [&](const Logits& all, index_t row) {
    result.emplace_back(all.begin() + row * kVocab, all.begin() + (row + 1) * kVocab);
  };
  take(decoder.read(together), 1);
  for (std::size_t at = prompt; at < ids.size(); ++at) {
    std::vector<Decoder::Next> next{{4, 3}, {2, ids[at]}};
    if (at % 3 != 0) next.insert(next.begin(), {1, static_cast<std::int32_t>(at)});
    if (at % 4 != 1) next.push_back({0, 60});
    take(decoder.go_on(next), at % 3 != 0 ? 2 : 1);
  }
  return result;
}

}  // namespace

TEST_CASE("kept keys and values give the logits of the whole text") {
  for (const Config& config : {tiny_gpt(), tiny_llama(), tiny_qwen2(), tiny_qwen3(), tiny_lora()}) {
    const Wanted want{wanted(config, kFirst), wanted(config, kSecond)};
    for (const Grid& grid : all_grids()) check_grid(config, want, grid, AttentionRule::automatic);
    check_grid(config, want, {2, 2, 2, {}, {}, {}}, AttentionRule::sequences);
    check_grid(config, want, {1, 2, 2, {}, {}, {}}, AttentionRule::heads);
  }
}

TEST_CASE("on one rank a text does not depend on its batch, to the bit") {
  for (Config config : {tiny_gpt(), tiny_llama(), tiny_qwen3()})
    for (const ComputeType compute : {ComputeType::fp32, ComputeType::bf16})
      for (const int threads : {1, 2}) {
        config.precision.compute = compute;
        config.precision.backend = BackendRule::cpu;
        config.model.ffn = 83;  // no multiple of a vector: rows begin anywhere in one
        const std::vector<std::int32_t> ids = text_of(5, 12);
        with_model(config, {}, AttentionRule::automatic, threads,
                   [&](Transformer& model, const Formation& formation) {
                     Decoder alone(formation.context(), model, 1, 16);
                     Decoder batch(formation.context(), model, 5, 16);
                     INFO(config.model.heads << " heads, " << compute << ", threads " << threads);
                     CHECK(read_alone(alone, 0, ids, 4) == read_among_others(batch, ids, 4));
                   });
      }
}

TEST_CASE("greedy texts are those without kept keys, on every cuboid") {
  const std::vector<std::size_t> prompts{3, 5, 2};
  for (Config config : {tiny_gpt(), tiny_llama()}) {
    config.precision.backend = BackendRule::cpu;
    const auto likeliest = [](const float* logits) {
      return static_cast<std::int32_t>(std::max_element(logits, logits + kVocab) - logits);
    };
    const Weights values = trained_weights(config);
    std::vector<std::vector<std::int32_t>> want;
    for (std::size_t number = 0; number < prompts.size(); ++number) {
      std::vector<std::int32_t> ids = text_of(static_cast<index_t>(30 + number), 16);
      for (std::size_t at = prompts[number]; at < ids.size(); ++at)
        ids[at] = likeliest(
            without_cache(config, {ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(at)},
                          values)
                .back()
                .data());
      want.push_back(ids);
    }
    std::set<std::int32_t> different;
    for (const auto& ids : want) different.insert(ids.begin() + 5, ids.end());
    CHECK(different.size() > 5);  // not one token again and again
    for (const Grid& grid : all_grids()) {
      std::mutex mutex;
      std::vector<std::vector<std::vector<std::int32_t>>> texts;
      with_model(
          config, grid, AttentionRule::automatic, 1,
          [&](Transformer& model, const Formation& formation) {
            Decoder decoder(formation.context(), model, 3, 16);
            std::vector<std::vector<std::int32_t>> own;
            std::vector<Decoder::Prompt> reading;
            for (std::size_t number = 0; number < prompts.size(); ++number) {
              own.emplace_back(want[number].begin(),
                               want[number].begin() + static_cast<std::ptrdiff_t>(prompts[number]));
              reading.push_back({static_cast<index_t>(number), own.back()});
            }
            Logits logits = decoder.read(reading);
            for (std::vector<index_t> slots{0, 1, 2}; !slots.empty();) {
              std::vector<Decoder::Next> next;
              for (std::size_t row = 0; row < slots.size(); ++row) {
                auto& ids = own[static_cast<std::size_t>(slots[row])];
                ids.push_back(likeliest(logits.data() + row * kVocab));
                if (ids.size() < 16) next.push_back({slots[row], ids.back()});
              }
              slots.clear();
              for (const Decoder::Next& going_on : next) slots.push_back(going_on.slot);
              if (!next.empty()) logits = decoder.go_on(next);
            }
            const std::lock_guard lock(mutex);
            texts.push_back(own);
          },
          values);
      INFO(grid.text());
      CHECK(std::count(texts.begin(), texts.end(), want) == grid.ranks());
    }
  }
}

TEST_CASE("too little memory for keys and values is said before any is taken") {
  with_model(tiny_gpt(), {}, AttentionRule::automatic, 1,
             [](Transformer& model, const Formation& formation) {
               std::string message;
               try {
                 const Decoder decoder(formation.context(), model, 100'000'000, 16);
               } catch (const Error& error) {
                 CHECK(error.code() == ExitCode::unavailable);
                 message = error.what();
               }
               // 2 layers, keys and values, 32 columns of fp32
               CHECK(message.find("100000000 sequences of up to 16 tokens take 781250 MiB") ==
                     std::string("keys and values of ").size());
             });
}
