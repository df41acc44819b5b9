// The verbs that aggregate gradients: what must hold beside their bounds (compare.cpp), to the bit.
#include <algorithm>
#include <cmath>

#include "ops/adasum_tree.hpp"
#include "ops/case_list.hpp"
#include "support/catch.hpp"

namespace t3d::ops_test {
namespace {

constexpr DType kDTypes[] = {DType::f32, DType::bf16};

/// The buffers after the case has run.
std::vector<Buffer> run(const OpCase& op, Ops& ops) {
  Queue queue;
  auto buffers = op.make_buffers();
  op.call(ops, queue, buffers);
  return buffers;
}

/// One call of the verb on numbers in host memory.
struct Verb {
  explicit Verb(index_t n, index_t groups = 1)
      : vectors(n),
        gram(static_cast<std::size_t>(groups * adasum::packed_size(n))),
        weights(static_cast<std::size_t>(n), 1.0),
        noise(static_cast<std::size_t>(groups * 2)),
        coefficients(static_cast<std::size_t>(groups * n), -1.0),
        gains(static_cast<std::size_t>(groups)),
        summary(static_cast<std::size_t>(adasum_summary::columns + n)) {}

  double& dot(index_t i, index_t j, index_t group = 0) {
    return gram[static_cast<std::size_t>(group * adasum::packed_size(vectors) +
                                         adasum::packed_at(i, j, vectors))];
  }
  void run() {
    const auto view = [](std::vector<double>& numbers, index_t rows) {
      const auto count = static_cast<index_t>(numbers.size());
      return TensorView(numbers.data(), DType::f64, rows, count / rows);
    };
    const auto groups = static_cast<index_t>(gains.size());
    args.gram = view(gram, groups), args.weights = view(weights, 1);
    args.noise = view(noise, groups), args.coefficients = view(coefficients, groups);
    args.gains = view(gains, 1), args.summary = view(summary, 1);
    Queue queue;
    make_cpu_ops(1)->adasum(queue, args);
  }

  index_t vectors;
  AdasumArgs args;
  std::vector<double> gram, weights, noise, coefficients, gains, summary;
};

/// Two groups of n vectors with uneven weights and different dots.
Verb plain_verb(index_t n) {
  Verb verb(n, 2);
  for (index_t i = 0; i < n; ++i) {
    verb.weights[static_cast<std::size_t>(i)] = 0.5 + 0.3 * static_cast<double>(i);
    for (index_t j = i; j < n; ++j)
      for (index_t g = 0; g < 2; ++g)
        verb.dot(i, j, g) = (i == j ? 5 : 1) + 0.1 * static_cast<double>(i + j * j + 3 * g);
  }
  return verb;
}

}  // namespace

TEST_CASE("dots and combinations do not depend on the number of threads") {
  const auto one = make_cpu_ops(1), three = make_cpu_ops(3);
  for (const DType dtype : kDTypes)
    for (const OpCase& op :
         {gram_case(5, 50000, Cut::many, dtype), gram_case(2, 70001, Cut::one, dtype),
          combine_case(5, 50000, Cut::many, dtype, dtype)}) {
      const auto a = run(op, *one), b = run(op, *three);
      for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i].same_bytes(b[i]));
    }
}

// Squares of these leave the range of fp32.
TEST_CASE("dots of tiny and huge gradients are as good as others") {
  constexpr index_t kCount = 5001;
  for (const auto& ops : {make_reference_ops(), make_cpu_ops(2)})
    for (const double size : {0x1p-100, 0x1p100})
      for (const DType dtype : kDTypes) {
        INFO(ops->name() << " " << size << " " << name_of(dtype));
        OpCase op = gram_case(4, kCount, Cut::one, dtype);
        op.buffers[0].content = Content::integer, op.buffers[0].spread = 3;
        op.prepare = [](std::vector<Buffer>& b) {
          for (index_t d = 0; d < adasum::packed_size(4); ++d) b[1].set(0, d, 0);
        };
        const auto plain = run(op, *ops);
        op.prepare = [&, zeros = op.prepare](std::vector<Buffer>& b) {
          zeros(b);
          for (index_t i = 0; i < 4; ++i)
            for (index_t c = 0; c < kCount; ++c) b[0].set(i, c, b[0].at(i, c) * size);
        };
        const auto scaled = run(op, *ops);
        for (index_t d = 0; d < adasum::packed_size(4); ++d)
          CHECK(scaled[1].at(0, d) == plain[1].at(0, d) * size * size);
      }
}

TEST_CASE("NaN and infinity reach their own dots and nobody else's") {
  for (const auto& ops : {make_reference_ops(), make_cpu_ops(1)})
    for (const DType dtype : kDTypes)
      for (const double poison : {std::nan(""), HUGE_VAL, -HUGE_VAL})
        for (const index_t at : {0, 4095, 4999}) {
          INFO(ops->name() << " " << name_of(dtype) << " " << poison << " at " << at);
          OpCase op = gram_case(3, 5000, Cut::one, dtype);
          op.prepare = [&](std::vector<Buffer>& b) { b[0].set(1, at, poison); };
          const auto result = run(op, *ops);
          for (index_t i = 0; i < 3; ++i)
            for (index_t j = i; j < 3; ++j)
              CHECK(std::isfinite(result[1].at(0, adasum::packed_at(i, j, 3))) ==
                    (i != 1 && j != 1));
        }
}

// Halves of the last bit among them, infinity, and a NaN whose payload bf16 has no room for.
TEST_CASE("combination of one vector rounds as a conversion does") {
  constexpr index_t kCount = 200;  // whole vector registers and a rest
  OpCase op = combine_case(1, kCount, Cut::one, DType::f32, DType::bf16);
  op.prepare = [](std::vector<Buffer>& b) {
    b[1].set(0, 0, 1);
    for (index_t c = 0; c < kCount; ++c)
      b[0].set(0, c, c % 50 == 7 ? HUGE_VAL : 1 + static_cast<double>(c - 100) * 0x1p-9);
    for (const index_t c : {3, 199}) static_cast<std::uint32_t*>(b[0].view().data)[c] = 0x7f800001U;
  };
  const auto cpu = make_cpu_ops(1);
  const auto result = run(op, *cpu);
  for (index_t c = 0; c < kCount; ++c) {
    const double from = result[0].at(0, c), to = result[2].at(0, c);
    if (c == 3 || c == 199)
      CHECK(std::isnan(to));
    else
      CHECK(to == static_cast<double>(bf16(from)));
  }
}

// Vectors 0, 2 and 5 of six take part; they alone must give the same.
TEST_CASE("vectors without weight or with numbers that are not finite are left out") {
  const std::vector<index_t> live = {0, 2, 5};
  Verb all = plain_verb(6), few(3, 2);
  for (std::size_t a = 0; a < 3; ++a) {
    few.weights[a] = all.weights[static_cast<std::size_t>(live[a])];
    for (std::size_t b = a; b < 3; ++b)
      for (index_t g = 0; g < 2; ++g)
        few.dot(static_cast<index_t>(a), static_cast<index_t>(b), g) = all.dot(live[a], live[b], g);
  }
  all.weights[1] = 0, all.weights[3] = -1;
  for (index_t i = 0; i < 6; ++i) all.dot(i, 4, 1) = i == 4 ? HUGE_VAL : std::nan("");
  for (const AggregateRule rule :
       {AggregateRule::mean, AggregateRule::sum, AggregateRule::adasum}) {
    all.args.rule = few.args.rule = rule;
    all.run(), few.run();
    for (std::size_t i = 0; i < 6; ++i) {
      const auto at = std::find(live.begin(), live.end(), static_cast<index_t>(i)) - live.begin();
      for (std::size_t g = 0; g < 2; ++g)
        CHECK(all.coefficients[g * 6 + i] ==
              (at < 3 ? few.coefficients[g * 3 + static_cast<std::size_t>(at)] : 0.0));
      CHECK(all.summary[adasum_summary::columns + i] == (at < 3 ? 1.0 : 0.0));
    }
    CHECK(all.gains == few.gains);
    CHECK(all.noise == few.noise);
    for (std::size_t c = 0; c < adasum_summary::columns; ++c)
      CHECK(all.summary[c] == few.summary[c]);
  }
}

TEST_CASE("nobody left gives nothing") {
  Verb verb = plain_verb(2);
  verb.dot(0, 0, 0) = std::nan(""), verb.dot(1, 1, 1) = HUGE_VAL;
  verb.noise = {1, 2, 3, 4};
  verb.run();
  CHECK(verb.coefficients == std::vector<double>(4, 0.0));
  CHECK(verb.gains == std::vector<double>(2, 1.0));
  CHECK(verb.noise == std::vector<double>{1, 2, 3, 4});
  CHECK(verb.summary == std::vector<double>{0, 4, 6, 1, 0, 0, 0});
}

// Numbers by hand: dots 5, 1, 4; weights 1 and 3; the vectors have been multiplied by 1/0.5.
TEST_CASE("noise, leaves, gain and summary of two vectors") {
  Verb verb(2);
  verb.dot(0, 0) = 5, verb.dot(0, 1) = 1, verb.dot(1, 1) = 4;
  verb.weights = {1, 3};
  verb.args.unscale = 0.5, verb.args.noise_decay = 0.75, verb.args.gain_exponent = 0.5;
  verb.noise = {2, 1};
  verb.run();
  const double signal = 0.75 * 2 + 0.25 * 0.25 * 1;
  const double noise = 0.75 * 1 + 0.25 * 0.25 * (1 * (5 - 1) + 3 * (4 - 1)) / 2;
  CHECK(verb.noise[0] == Approx(signal).epsilon(1e-15));
  CHECK(verb.noise[1] == Approx(noise).epsilon(1e-15));
  const double leaf = adasum::expected_gain(3, noise / signal);
  const double a = 1 - 0.25 * (leaf * 1) / 5,
               b = leaf * (1 - 0.75 * (leaf * 1) / (leaf * leaf * 4));
  CHECK(verb.coefficients[0] == Approx(a).epsilon(1e-14));
  CHECK(verb.coefficients[1] == Approx(b).epsilon(1e-14));
  const double square = (1 * 5 + 2 * 3 * 1 + 9 * 4) / 16.0;
  const double along = (a * (1 * 5 + 3 * 1) + b * (1 * 1 + 3 * 4)) / 4;
  CHECK(verb.gains[0] == Approx(std::sqrt(along / square)).epsilon(1e-14));
  CHECK(verb.summary[adasum_summary::mean_squares] == Approx(square / 4).epsilon(1e-14));
  CHECK(verb.summary[adasum_summary::signal] == verb.noise[0]);
  CHECK(verb.summary[adasum_summary::noise] == verb.noise[1]);
  CHECK(verb.summary[adasum_summary::gain] == Approx(along / square).epsilon(1e-14));
  CHECK(verb.summary[adasum_summary::weights] == 4);

  verb.args.noise_leaf = false;
  verb.run();
  CHECK(verb.coefficients[0] == Approx(1 - 0.25 * 3 / 5).epsilon(1e-14));
  CHECK(verb.coefficients[1] == Approx(3 * (1 - 0.75 * 3 / 36)).epsilon(1e-14));
  verb.args.plain_leaf = true;
  verb.run();
  CHECK(verb.coefficients[0] == Approx(1 - 0.25 / 5).epsilon(1e-14));
}

TEST_CASE("gains stay between one vector and the sum") {
  for (const double weight : {0.25, 2.0}) {
    INFO("weights " << weight);
    Verb verb(2);
    verb.weights = {weight, weight};
    verb.dot(0, 0) = 1, verb.dot(1, 1) = 1, verb.dot(0, 1) = 0;
    verb.args.plain_leaf = true;  // the sum, twice the mean, of vectors that count for `weight`
    verb.run();
    CHECK(verb.gains[0] == (weight < 1 ? 1.0 : 2.0));
    verb.dot(0, 1) = -1 + 1e-9;  // the mean is next to nothing
    verb.run();
    CHECK(verb.gains[0] <= std::max(1.0, 2 * weight));
    CHECK(verb.gains[0] >= std::min(1.0, 2 * weight));
    verb.dot(0, 1) = -1;
    verb.run();
    CHECK(verb.gains[0] == 1);
  }
}

TEST_CASE("a single vector is its own mean") {
  Verb verb(1);
  verb.weights = {0.3}, verb.gram = {2};
  verb.args.rule = AggregateRule::mean;
  verb.run();
  CHECK(verb.coefficients[0] == 1);
  CHECK(verb.noise == std::vector<double>(2, 0.0));
}

}  // namespace t3d::ops_test
