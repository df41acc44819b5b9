// What Adasum is for, measured on a task of seconds (bench/digits.hpp): a learning rate tuned for
// one replica stays right for any number of replicas, any dealing of the batch, any membership.
// Gradients are aggregated by the verbs that training uses. docs/results/adasum-digits.md has it
// all.
//
//   t3d_bench_adasum law               the gain on Gaussian vectors against its closed form
//   t3d_bench_adasum scale             steps to the target by number of replicas (minutes)
//   t3d_bench_adasum batches           uneven batches; members that change every step
//   t3d_bench_adasum run --method adasum --replicas 1..32 --batches 4,8 --draw   one line:
//                                      median, least and most steps over the seeds ("fails")
// Options of all: --seeds 5 (seeds 1 to 5), --lr 0.08, --cap 1500 (steps), --reference (back end).
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>

#include "digits_run.hpp"
#include "ops/adasum_tree.hpp"

namespace t3d::bench {
namespace {

constexpr double kFails = std::numeric_limits<double>::infinity();

struct Options {
  std::string command;
  Training training;
  index_t seeds = 5;
  bool reference = false;
};

/// One training per seed.
struct Sample {
  std::vector<double> steps;  // kFails where the target was not reached
  std::vector<Outcome> outcomes;

  [[nodiscard]] double middle() const { return median(steps); }
  [[nodiscard]] double least() const { return *std::min_element(steps.begin(), steps.end()); }
  [[nodiscard]] double most() const { return *std::max_element(steps.begin(), steps.end()); }
};

std::string text_of(double steps) {
  return steps == kFails ? "fails" : fmt::format("{:.0f}", steps);
}
std::string text_of(const Sample& sample) {
  if (sample.least() == kFails) return "fails";
  return fmt::format("{} ({}..{})", text_of(sample.middle()), text_of(sample.least()),
                     text_of(sample.most()));
}

class Experiments {
 public:
  Experiments(const Machine& machine, Options options)
      : machine_(machine), options_(std::move(options)) {}

  void run() const {
    const Sample sample = measure(options_.training);
    fmt::print("{} {} {}\n", text_of(sample.middle()), text_of(sample.least()),
               text_of(sample.most()));
  }

  void law() const;
  void scale() const;
  void batches() const;

 private:
  void print_title(const char* title) const {
    fmt::print("# {}; back end {}, seeds 1 to {}\n\n", title, machine_.ops.name(), options_.seeds);
  }
  [[nodiscard]] Sample measure(const Training& training) const {
    Sample sample;
    for (index_t seed = 1; seed <= options_.seeds; ++seed) {
      sample.outcomes.push_back(train(machine_, training, static_cast<std::uint64_t>(seed)));
      const Outcome& outcome = sample.outcomes.back();
      sample.steps.push_back(outcome.reached ? static_cast<double>(outcome.steps) : kFails);
    }
    return sample;
  }
  [[nodiscard]] Training with(const Method& method, const Members& members, double lr) const {
    return {method, members, lr, options_.training.cap};
  }
  [[nodiscard]] double mean_gain(const std::vector<double>& weights, double ratio,
                                 const Aggregator::Wish& wish) const;
  [[nodiscard]] double tune() const;
  void print_figures(index_t n, const Sample& sample) const;
  void print_schedule(const char* name, const Members& members) const;

  Machine machine_;
  Options options_;
};

/// Measured S of the vectors G + noise with |G| = 1 and the noise of a vector of weight w of square
/// length ratio / w; mean of seeds.
double Experiments::mean_gain(const std::vector<double>& weights, double ratio,
                              const Aggregator::Wish& wish) const {
  constexpr index_t kSize = 20000;
  const auto n = static_cast<index_t>(weights.size());
  const Tensor x(machine_.device, DType::f32, n, kSize, MemoryKind::gradients);
  const Tensor signal(machine_.device, DType::f32, 1, kSize, MemoryKind::gradients);
  const Tensor out(machine_.device, DType::f32, 1, kSize, MemoryKind::gradients);
  machine_.ops.fill(machine_.queue, signal, std::sqrt(1.0 / kSize));
  double sum = 0;
  for (index_t seed = 1; seed <= options_.seeds; ++seed) {
    const RandomKey key{static_cast<std::uint64_t>(seed), stream_of("gaussian vectors")};
    for (index_t i = 0; i < n; ++i) {
      const TensorView row = x.view().row_range(i, 1);
      const double square = ratio / weights[static_cast<std::size_t>(i)];
      machine_.ops.random_init(machine_.queue, row, key, i, 0, kSize, std::sqrt(square / kSize));
      machine_.ops.add(machine_.queue, signal, row);
    }
    Aggregator aggregator(machine_, {{0, kSize, 0}}, 1);
    aggregator.combine(wish, x, weights, out);
    sum += aggregator.gain(0);
  }
  return sum / static_cast<double>(options_.seeds);
}

void Experiments::law() const {
  print_title("gain (its law) of Gaussian vectors, mean");
  double worst = 0;
  const auto beside_law = [&](double gain, double total, double ratio) {
    const double law = adasum::expected_gain(total, ratio);
    worst = std::max(worst, std::abs(gain / law - 1));
    return fmt::format("{:.3f} ({:.3f})", gain, law);
  };
  fmt::print("| n | b = 0.25 | b = 1 | b = 4 | b = 16 |\n|---:|---|---|---|---|\n");
  for (const int n : {2, 3, 4, 6, 8, 12, 16, 24, 32}) {
    const std::vector<double> ones(static_cast<std::size_t>(n), 1.0);
    std::string row = fmt::format("| {} |", n);
    for (const double ratio : {0.25, 1.0, 4.0, 16.0})
      row += fmt::format(" {} |", beside_law(mean_gain(ones, ratio, kAdasum.wish), n, ratio));
    fmt::print("{}\n", row);
  }
  const std::vector<double> uneven{0.4, 1.6, 0.8, 1.2, 1, 0.5, 1.5, 1};
  fmt::print("\nweights {}\n\n| b | noise leaf | linear leaf |\n|---:|---|---|\n",
             fmt::join(uneven, ", "));
  for (const double ratio : {0.02, 1.0, 4.0, 200.0})
    fmt::print("| {} | {} | {:.3f} |\n", ratio,
               beside_law(mean_gain(uneven, ratio, kAdasum.wish), 8, ratio),
               mean_gain(uneven, ratio, kLinearLeaf.wish));
  fmt::print("\nlargest deviation from the law {:.2f} %\n", 100 * worst);
}

/// The learning rate that a user would have found with one replica.
double Experiments::tune() const {
  double best = 0, fewest = kFails;
  fmt::print("| lr | steps at n = 1 |\n|---:|---|\n");
  for (const double lr : {0.01, 0.02, 0.04, 0.08, 0.16, 0.32}) {
    const Sample sample = measure(with(kAdasum, {}, lr));
    fmt::print("| {} | {} |\n", lr, text_of(sample));
    if (sample.middle() < fewest) fewest = sample.middle(), best = lr;
  }
  fmt::print("\nlr {} from here on\n\n", best);
  return best;
}

void Experiments::print_figures(index_t n, const Sample& sample) const {
  std::string row = fmt::format("| {} |", n);
  for (std::size_t g = 0; g < DigitsModel::kGroups; ++g) {
    std::vector<double> gain, ratio, law;
    for (const Outcome& outcome : sample.outcomes) {
      gain.push_back(outcome.groups[g].gain);
      ratio.push_back(outcome.groups[g].noise_ratio);
      law.push_back(outcome.groups[g].law);
    }
    row += fmt::format(" {:.1f} ({:.1f}, b {:.1f}) |", median(gain), median(law), median(ratio));
  }
  fmt::print("{}\n", row);
}

void Experiments::scale() const {
  print_title("steps to the target by replicas, median (least..most)");
  const double lr = tune();
  // Equal weights ask nothing of the noise meter, so it may show single steps: b grows all the
  // time.
  Method adasum = kAdasum;
  adasum.wish.noise_decay = 0;
  std::vector<std::pair<index_t, Sample>> adasums;
  fmt::print(
      "| n | mean | sum | adasum | mean, best of lr x 1, 2, 4, 8, 16, 32 |\n"
      "|---:|---|---|---|---|\n");
  for (const index_t n : {1, 4, 16, 32, 64}) {
    const Members members{n, n};
    const Sample mean = measure(with(kMean, members, lr));
    Sample best = mean;
    double factor = 1;
    for (double f = 2; f <= 32; f *= 2)
      if (const Sample s = measure(with(kMean, members, f * lr)); s.middle() < best.middle())
        best = s, factor = f;
    adasums.emplace_back(n, measure(with(adasum, members, lr)));
    fmt::print("| {} | {} | {} | {} | {}, x {} |\n", n, text_of(mean),
               text_of(measure(with(kSum, members, lr))), text_of(adasums.back().second),
               text_of(best), factor);
    std::fflush(stdout);
  }
  fmt::print(
      "\nmedian over the steps of Adasum's gain S (S(n) of the step's b, b) by group\n\n"
      "| n | W1 | b1 | W2 | b2 |\n|---:|---|---|---|---|\n");
  for (const auto& [n, sample] : adasums)
    if (n > 1) print_figures(n, sample);
}

void Experiments::print_schedule(const char* name, const Members& members) const {
  fmt::print("| {} |", name);
  for (const Method& method : {kClassical, kLinearLeaf, kAdasum, kMean, kSum}) {
    fmt::print(" {} |", text_of(measure(with(method, members, options_.training.lr))));
    std::fflush(stdout);
  }
  fmt::print("\n");
}

void Experiments::batches() const {
  print_title("steps to the target by batches, median (least..most)");
  fmt::print(
      "| batches of the replicas | classical | weighted, linear leaf | weighted, noise leaf "
      "| weighted mean | weighted sum |\n|---|---|---|---|---|---|\n");
  print_schedule("8 x 16", {8, 8});
  print_schedule("4, 40, 4, 32, 8, 16, 8, 16", {8, 8, {4, 40, 4, 32, 8, 16, 8, 16}});
  print_schedule("n of 1..32 each step, 16", {1, 32});
  print_schedule("n of 1..32 each step, any of 4, 8, 16, 32", {1, 32, {4, 8, 16, 32}, true});
}

template <class Number>
Number read(const std::string& text, Number least, Number most) {
  Number value{};
  const auto end = text.data() + text.size();
  if (const auto [stop, error] = std::from_chars(text.data(), end, value);
      error != std::errc() || stop != end || !(value >= least && value <= most))
    throw_error(ExitCode::usage, "'{}' is not a number from {} to {}", text, least, most);
  return value;
}
index_t count_of(const std::string& text) { return read<index_t>(text, 1, 1000000); }

Method method_of(const std::string& name) {
  for (const Method& method : {kMean, kSum, kAdasum, kLinearLeaf, kClassical})
    if (method.name == name) return method;
  throw_error(ExitCode::usage, "no method '{}'", name);
}

void read_members(Members& members, const std::string& range) {
  constexpr index_t kMost = 64;  // vectors that the verb gram takes
  const std::size_t dots = range.find("..");
  members.least = read<index_t>(range.substr(0, dots), 1, kMost);
  members.most = dots == std::string::npos
                     ? members.least
                     : read<index_t>(range.substr(dots + 2), members.least, kMost);
}

std::vector<index_t> read_list(const std::string& text) {
  std::vector<index_t> list;
  std::istringstream words(text + ",");
  for (std::string word; std::getline(words, word, ',');) list.push_back(count_of(word));
  return list;
}

Options read_options(const std::vector<std::string>& words) {
  Options options;
  Training& training = options.training;
  if (!words.empty()) options.command = words[0];
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--draw") {
      training.members.draw_batches = true;
    } else if (word == "--reference") {
      options.reference = true;
    } else if (i + 1 == words.size()) {
      throw_error(ExitCode::usage, "{}: what is it, or where is its value?", word);
    } else if (const std::string& value = words[++i]; word == "--method") {
      training.method = method_of(value);
    } else if (word == "--replicas") {
      read_members(training.members, value);
    } else if (word == "--batches") {
      training.members.batches = read_list(value);
    } else if (word == "--lr") {
      training.lr = read<double>(value, 0, 1e6);
    } else if (word == "--cap") {
      training.cap = count_of(value);
    } else if (word == "--seeds") {
      options.seeds = count_of(value);
    } else {
      throw_error(ExitCode::usage, "no option '{}'", word);
    }
  }
  return options;
}

void run_command(const Options& options) {
  const auto device = make_cpu_device();
  const auto queue = device->make_queue();
  const auto ops = options.reference ? make_reference_ops() : make_cpu_ops(1);
  const Experiments experiments({*device, *queue, *ops}, options);
  const std::pair<const char*, void (Experiments::*)() const> commands[] = {
      {"run", &Experiments::run},
      {"law", &Experiments::law},
      {"scale", &Experiments::scale},
      {"batches", &Experiments::batches}};
  for (const auto& [name, command] : commands)
    if (options.command == name) return (experiments.*command)();
  throw_error(ExitCode::usage, "one of run, law, scale, batches");
}

}  // namespace
}  // namespace t3d::bench

int main(int count, char** values) {
  try {
    t3d::bench::run_command(t3d::bench::read_options({values + 1, values + count}));
  } catch (const t3d::Error& error) {
    fmt::print(stderr, "t3d_bench_adasum: {}\n", error.what());
    return static_cast<int>(error.code());
  }
  return 0;
}
