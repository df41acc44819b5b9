// The same small GPT-2, Llama and Qwen in PyTorch (tests/reference/make_pytorch_cases.py), whole,
// with adapters and with frozen parameters: loss, logits, every parameter's gradient, ten AdamW
// losses; on one rank and on uneven cuboids, on both back ends.
#include <hdf5.h>

#include <cmath>

#include "support/catch.hpp"
#include "support/model_rig.hpp"
#include "train/optimizer/optimizer.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

class Results {
 public:
  explicit Results(const std::string& name)
      : file_(H5Fopen((std::string(T3D_TEST_SOURCE) + "/reference/" + name + ".h5").c_str(),
                      H5F_ACC_RDONLY, H5P_DEFAULT)) {
    if (file_ < 0) throw_error(ExitCode::no_input, "no reference results {}", name);
  }
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;
  ~Results() { H5Fclose(file_); }
  template <class T>
  std::vector<T> read(const std::string& path) const {
    const hid_t set = H5Dopen2(file_, path.c_str(), H5P_DEFAULT);
    if (set < 0) throw_error(ExitCode::no_input, "no {} in the reference results", path);
    const hid_t space = H5Dget_space(set);
    std::vector<T> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
    H5Dread(set, std::is_same_v<T, double> ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT32, H5S_ALL, H5S_ALL,
            H5P_DEFAULT, values.data());
    H5Sclose(space);
    H5Dclose(set);
    return values;
  }

 private:
  hid_t file_;
};

// The formula of make_pytorch_cases.py.
double initial_value(const std::string& name, index_t index) {
  std::uint32_t h = 0x811C9DC5U;
  for (const char letter : name) h = (h ^ static_cast<std::uint8_t>(letter)) * 0x01000193U;
  std::uint32_t x = h + static_cast<std::uint32_t>(index) * 0x9E3779B9U;
  x ^= x >> 16;
  x *= 0x85EBCA6BU;
  x ^= x >> 13;
  x *= 0xC2B2AE35U;
  x ^= x >> 16;
  const float u = static_cast<float>(static_cast<int>(x % 2000) - 1000) / 1000.0F;
  const bool norm = name.find("norm") != std::string::npos && name.ends_with(".weight");
  return static_cast<double>(norm ? 1.0F + 0.125F * u : 0.25F * u);
}

// Largest difference of two arrays relative to the largest reference value.
double worst(const std::vector<double>& got, const std::vector<double>& want) {
  if (got.size() != want.size()) return INFINITY;
  double difference = 0, scale = 1e-30;
  for (std::size_t at = 0; at < got.size(); ++at) {
    difference = std::max(difference, std::abs(got[at] - want[at]));
    scale = std::max(scale, std::abs(want[at]));
  }
  return difference / scale;
}

struct Outcome {
  double frozen_change = 0;  // largest of a weight that is not trained
  std::vector<double> logits, losses, norms;
  GlobalTensors gradients;
};

void run_rank(const Config& config, Communicator& world, const Results& reference, Outcome& outcome,
              std::mutex& mutex) {
  Machine machine(world, test_machine(config));
  const Formation formation(machine, plan_of(config, machine), config.optimizer);
  const Context& context = formation.context();
  Transformer& model = formation.model();
  model.allocate();
  set_weights(model, initial_value);
  std::vector<std::int32_t> ids, targets;
  {
    const std::lock_guard lock(mutex);
    ids = reference.read<std::int32_t>("ids");
    targets = reference.read<std::int32_t>("targets");
  }
  const SlabBatch slab(model, formation.mesh(), ids, targets, 3);
  PassInfo pass;
  pass.length = config.model.context;
  const double tokens = static_cast<double>(3 * pass.length);
  const auto total_loss = [&] {
    double sum = model.loss_sum();
    world.all_reduce({&sum, DType::f64, 1, 1}, ReduceOp::sum).wait_host();
    return sum / tokens;
  };
  for (const index_t row : {index_t{0}, index_t{5}, index_t{47}}) {
    const Partition rows = model.shape().tokens(3, pass.length);
    HeadLoss::RowsOfSlabs wanted(static_cast<std::size_t>(rows.parts()));
    wanted[static_cast<std::size_t>(rows.part_of(row))] = {row - rows.begin(rows.part_of(row))};
    const std::vector<float> logits = model.logits(slab.batch.ids, rows, pass, wanted);
    if (world.rank() == 0)
      outcome.logits.insert(outcome.logits.end(), logits.begin(), logits.end());
  }
  OptimizerConfig options;
  options.lr = 1e-2;
  const auto optimizer = make_optimizer(context, formation.plan(), options, model.buckets());
  for (StateBuffers* state : optimizer->state()) state->clear();
  for (index_t step = 1; step <= 10; ++step) {
    model.clear_loss();
    model.train(slab.batch, pass, 1.0 / tokens, true);
    model.finish_gradients();
    if (step == 1) collect(model, true, outcome.gradients);
    double squares = 0;
    const Tensor sum = context.make(DType::f64, 1, 1, MemoryKind::workspace);
    context.ops.fill(context.queue, sum, 0);
    add_gradient_squares(context, model.buckets(), sum);
    squares = get(sum, 0, 0);
    world.all_reduce({&squares, DType::f64, 1, 1}, ReduceOp::sum).wait_host();
    const double loss = total_loss();
    if (world.rank() == 0) {
      outcome.losses.push_back(loss);
      outcome.norms.push_back(std::sqrt(squares));
    }
    optimizer->update(
        {step, options.lr, std::min(1.0, 1.0 / (std::sqrt(squares) + 1e-6)), {}, {}, nullptr});
    model.drop_gradients();
    model.weights_changed();
  }
  const std::lock_guard lock(mutex);
  for_each_element(model, false,
                   [&](const ParamEntry& entry, index_t index, TensorView shard, index_t at) {
                     if (!entry.frozen) return;
                     const double change = get(shard, 0, at) - initial_value(entry.name, index);
                     outcome.frozen_change = std::max(outcome.frozen_change, std::abs(change));
                   });
}

void compare(const std::string& name, Config config, const Grid& grid, BackendRule backend) {
  set_grid(config, grid);
  config.precision.backend = backend;
  const Results reference(name);
  Outcome outcome;
  std::mutex mutex;
  run_local_ranks(grid.ranks(),
                  [&](Communicator& world) { run_rank(config, world, reference, outcome, mutex); });
  INFO(name << " on " << grid.text() << ", " << backend);
  const std::vector<double> all_logits = reference.read<double>("logits");
  std::vector<double> logits;
  for (const std::size_t row : {0U, 5U, 47U})
    logits.insert(logits.end(), all_logits.begin() + static_cast<std::ptrdiff_t>(row * 61),
                  all_logits.begin() + static_cast<std::ptrdiff_t>((row + 1) * 61));
  CHECK(worst(outcome.logits, logits) < 1e-4);
  const std::vector<double> losses = reference.read<double>("adamw/losses");
  const std::vector<double> norms = reference.read<double>("adamw/grad_norms");
  for (std::size_t step = 0; step < losses.size(); ++step) {
    CHECK(outcome.losses[step] == Approx(losses[step]).epsilon(1e-4));
    CHECK(outcome.norms[step] == Approx(norms[step]).epsilon(1e-3));
  }
  CHECK(outcome.frozen_change == 0);
  for (const auto& [parameter, gradient] : outcome.gradients.values) {
    INFO(parameter);
    CHECK(worst(gradient, reference.read<double>("grads/" + parameter)) < 1e-4);
  }
}

}  // namespace

TEST_CASE("GPT-2 equals PyTorch", "[pytorch]") {
  for (const BackendRule backend : {BackendRule::reference, BackendRule::cpu}) {
    compare("gpt2", tiny_gpt(), {}, backend);
    compare("gpt2", tiny_gpt(), {2, 2, 2, {}, {}, {}}, backend);
    compare("gpt2", tiny_gpt(), {2, 3, 2, {1, 2}, {1, 2, 1}, {3, 1}}, backend);
  }
}

TEST_CASE("Llama equals PyTorch", "[pytorch]") {
  for (const BackendRule backend : {BackendRule::reference, BackendRule::cpu}) {
    compare("llama", tiny_llama(), {}, backend);
    compare("llama", tiny_llama(), {2, 2, 2, {}, {}, {}}, backend);
    compare("llama", tiny_llama(), {3, 2, 2, {1, 0, 2}, {1, 3}, {3, 1}}, backend);
  }
}

TEST_CASE("Qwen 2 equals PyTorch: biases of attention alone, YaRN", "[pytorch]") {
  for (const BackendRule backend : {BackendRule::reference, BackendRule::cpu}) {
    compare("qwen2", tiny_qwen2(), {}, backend);
    compare("qwen2", tiny_qwen2(), {2, 3, 2, {1, 2}, {1, 2, 1}, {3, 1}}, backend);
  }
}

TEST_CASE("Qwen 3 equals PyTorch: head size, norms of heads, Llama 3's rotations", "[pytorch]") {
  for (const BackendRule backend : {BackendRule::reference, BackendRule::cpu}) {
    compare("qwen3", tiny_qwen3(), {}, backend);
    compare("qwen3", tiny_qwen3(), {2, 2, 2, {}, {}, {}}, backend);
    compare("qwen3", tiny_qwen3(), {3, 2, 2, {1, 0, 2}, {1, 3}, {3, 1}}, backend);
  }
}

TEST_CASE("adapters of low rank equal PyTorch", "[pytorch]") {
  Config gpt = tiny_gpt();
  gpt.model.lora = {.rank = 3, .targets = {"k", "up"}};
  for (const BackendRule backend : {BackendRule::reference, BackendRule::cpu}) {
    compare("lora", tiny_lora(), {}, backend);
    compare("lora", tiny_lora(), {2, 2, 2, {}, {}, {}}, backend);
    compare("lora", tiny_lora(), {3, 2, 2, {1, 0, 2}, {1, 3}, {3, 1}}, backend);
    compare("lora_gpt2", gpt, {}, backend);
    compare("lora_gpt2", gpt, {2, 3, 2, {1, 2}, {1, 2, 1}, {3, 1}}, backend);
  }
  Config heads = tiny_lora();
  heads.mesh.attention = AttentionRule::heads;  // the projection's input lies in panels
  compare("lora", heads, {1, 1, 3, {}, {}, {}}, BackendRule::cpu);
  compare("lora", heads, {2, 2, 2, {}, {}, {}}, BackendRule::cpu);
}

TEST_CASE("frozen parameters equal PyTorch, and stay", "[pytorch]") {
  for (const BackendRule backend : {BackendRule::reference, BackendRule::cpu}) {
    compare("frozen", tiny_frozen(), {}, backend);
    compare("frozen", tiny_frozen(), {2, 3, 2, {1, 2}, {1, 2, 1}, {3, 1}}, backend);
  }
}
