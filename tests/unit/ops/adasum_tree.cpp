// Weighted Adasum from Gram matrices, against the same tree on whole vectors, written from the
// formula; the operator's properties; the law that its gain follows.
#include <cmath>
#include <numeric>

#include "core/random.hpp"
#include "ops/adasum_group.hpp"
#include "ops/flat_gain.hpp"
#include "support/catch.hpp"

namespace t3d {
namespace {

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}
double size_of(const Vector& a) { return std::sqrt(dot(a, a)); }

Vector sum_of(double a, const Vector& x, double b, const Vector& y) {
  Vector out(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = a * x[i] + b * y[i];
  return out;
}

/// Vectors with their weights; each enters the tree times its leaf.
struct Problem {
  std::vector<Vector> vectors;
  Vector weights, leaves;

  [[nodiscard]] index_t count() const { return static_cast<index_t>(vectors.size()); }
  void add(Vector vector, double weight = 1, double leaf = 1) {
    vectors.push_back(std::move(vector));
    weights.push_back(weight);
    leaves.push_back(leaf);
  }
  [[nodiscard]] Vector gram() const {
    Vector packed(static_cast<std::size_t>(adasum::packed_size(count())));
    for (index_t i = 0; i < count(); ++i)
      for (index_t j = i; j < count(); ++j)
        packed[static_cast<std::size_t>(adasum::packed_at(i, j, count()))] =
            dot(vectors[static_cast<std::size_t>(i)], vectors[static_cast<std::size_t>(j)]);
    return packed;
  }
};

double uniform(std::uint64_t stream, index_t at) {
  return static_cast<double>(random_uniform({11, stream}, at));
}

/// Standard normal entries.
Vector noise(std::size_t dimensions, std::uint64_t stream) {
  Vector out(dimensions);
  for (std::size_t d = 0; d < dimensions; ++d)
    out[d] = random_normal({7, stream}, static_cast<index_t>(d));
  return out;
}

/// n vectors with a common part `shared` and weights 0.2 .. 2.2; leaves are the weights.
Problem mixed(index_t n, double shared, std::size_t dimensions = 90) {
  Problem problem;
  const Vector common = noise(dimensions, 1000);
  for (index_t i = 0; i < n; ++i) {
    const double weight = 0.2 + 2 * uniform(3, i), length = std::exp2(6 * uniform(4, i) - 3);
    const Vector own = noise(dimensions, static_cast<std::uint64_t>(i));
    problem.add(sum_of(length * shared, common, length, own), weight, weight);
  }
  return problem;
}

struct Node {
  Vector vector;
  double weight = 0;
};

Node pair_of(const Node& a, const Node& b) {
  const double aa = dot(a.vector, a.vector), bb = dot(b.vector, b.vector);
  const double ab = dot(a.vector, b.vector), weight = a.weight + b.weight;
  const double nothing = std::ldexp(1.0, -80);
  if (aa <= nothing * bb || bb <= nothing * aa) return {sum_of(1, a.vector, 1, b.vector), weight};
  return {
      sum_of(1 - a.weight / weight * ab / aa, a.vector, 1 - b.weight / weight * ab / bb, b.vector),
      weight};
}

Node tree_of(const Problem& problem, std::size_t first, std::size_t last) {
  if (last - first == 1)
    return {sum_of(problem.leaves[first], problem.vectors[first], 0, problem.vectors[first]),
            problem.weights[first]};
  std::size_t left = 1;
  while (2 * left < last - first) left *= 2;
  return pair_of(tree_of(problem, first, first + left), tree_of(problem, first + left, last));
}

Vector dense(const Problem& problem) { return tree_of(problem, 0, problem.vectors.size()).vector; }

std::vector<int> all_live(const Problem& problem) {
  std::vector<int> live(problem.vectors.size());
  std::iota(live.begin(), live.end(), 0);
  return live;
}

Vector coefficients(const Problem& problem, const Vector& gram) {
  const std::vector<int> live = all_live(problem);
  Vector out = problem.leaves, room(live.size());
  adasum::tree(gram.data(), problem.count(), problem.weights.data(), live.data(),
               static_cast<int>(live.size()), out.data(), room.data());
  return out;
}
Vector coefficients(const Problem& problem) { return coefficients(problem, problem.gram()); }

Vector combination(const Problem& problem, const Vector& factors) {
  Vector out(problem.vectors[0].size());
  for (std::size_t i = 0; i < factors.size(); ++i)
    out = sum_of(1, out, factors[i], problem.vectors[i]);
  return out;
}
Vector adasum_of(const Problem& problem) { return combination(problem, coefficients(problem)); }

/// |a - b| beside the size of b.
double distance(const Vector& a, const Vector& b) {
  return size_of(sum_of(1, a, -1, b)) / std::max(size_of(b), 1e-300);
}

/// Gain of a problem with plain leaves, as the verb measures it.
double gain_of(const Problem& problem, bool plain_leaf, const Vector& gram) {
  const std::vector<int> live = all_live(problem);
  adasum::GroupStep step;
  step.n = problem.count(), step.weight = problem.weights.data();
  step.live = live.data(), step.count = static_cast<int>(live.size());
  step.total = adasum::total_weight(step.weight, step.live, step.count);
  step.plain_leaf = plain_leaf;
  Vector out(live.size()), room(live.size()), estimate(2);
  return adasum::aggregate_group(step, gram.data(), estimate.data(), out.data(), room.data()).gain;
}

double law(double n, double ratio) { return n * (1 + 2 * ratio) / (n + 2 * ratio); }

/// Gradients of a signal of length 1, noise of a reference batch of square `ratio`.
Problem gaussian(const Vector& weights, double ratio) {
  constexpr std::size_t kDimensions = 20000;
  const Vector direction = noise(kDimensions, 999);
  const double root = std::sqrt(static_cast<double>(kDimensions));
  Problem problem;
  for (std::size_t i = 0; i < weights.size(); ++i)
    problem.add(sum_of(1 / size_of(direction), direction, std::sqrt(ratio / weights[i]) / root,
                       noise(kDimensions, i)),
                weights[i]);
  return problem;
}

}  // namespace

TEST_CASE("coefficients from dot products give the tree on vectors") {
  for (index_t n = 1; n <= adasum::kMostVectors; ++n)
    for (const double shared : {0.0, 0.5, -3.0}) {
      INFO(n << " vectors, shared part " << shared);
      const Problem problem = mixed(n, shared);
      CHECK(distance(adasum_of(problem), dense(problem)) < 1e-11);
    }
}

TEST_CASE("equal weights give the classical operator") {
  Problem problem = mixed(4, 0.7);
  std::fill(problem.weights.begin(), problem.weights.end(), 0.3);
  std::fill(problem.leaves.begin(), problem.leaves.end(), 1.0);
  const auto classical = [](const Vector& a, const Vector& b) {
    return sum_of(1 - dot(a, b) / (2 * dot(a, a)), a, 1 - dot(a, b) / (2 * dot(b, b)), b);
  };
  const auto& g = problem.vectors;
  CHECK(distance(adasum_of(problem), classical(classical(g[0], g[1]), classical(g[2], g[3]))) <
        1e-13);
}

TEST_CASE("parallel vectors give their weighted mean") {
  const Vector direction = noise(40, 1);
  for (const index_t n : {1, 2, 3, 4, 7, 8, 13, 31, 64})
    for (const bool signs : {false, true}) {
      INFO(n << " vectors, signs " << signs);
      Problem problem;
      double mean = 0, total = 0;
      for (index_t i = 0; i < n; ++i) {
        const double sign = signs && i % 3 == 1 ? -1 : 1, weight = 0.1 + uniform(1, i);
        const double length = sign * (0.2 + uniform(2, i));
        problem.add(sum_of(length, direction, 0, direction), weight);
        mean += weight * length, total += weight;
      }
      CHECK(distance(adasum_of(problem), sum_of(mean / total, direction, 0, direction)) <
            (signs ? 1e-8 : 1e-13));  // signs cancel, in dot products too
    }
}

TEST_CASE("orthogonal vectors give their sum") {
  Problem problem;
  for (std::size_t i = 0; i < 11; ++i) {
    Vector axis(11);
    axis[i] = std::exp2(static_cast<double>(i) - 5);
    problem.add(axis, 0.5 + uniform(5, static_cast<index_t>(i)));
  }
  CHECK(coefficients(problem) == Vector(11, 1.0));
}

TEST_CASE("zero, opposite and negligible vectors") {
  const Vector a = noise(30, 1), b = noise(30, 2), zero(30);
  const auto of = [](const std::vector<Vector>& vectors) {
    Problem problem;
    for (const Vector& vector : vectors) problem.add(vector);
    return problem;
  };
  CHECK(distance(adasum_of(of({a, zero})), a) == 0);
  CHECK(distance(adasum_of(of({zero, b, zero})), b) == 0);
  CHECK(size_of(adasum_of(of({zero, zero, zero}))) == 0);
  const Vector back = sum_of(-1, a, 0, a);
  CHECK(size_of(adasum_of(of({a, back}))) < 1e-14);
  // What is left of two opposite vectors has no say in the next pair.
  for (const double length : {-1.0, -1.0 - 1e-15, -1.0 + 1e-9, -1.0 - 1e-7})
    CHECK(distance(adasum_of(of({a, sum_of(length, a, 0, a), b, b})), b) < 1e-6);
  const Vector tiny = sum_of(1e-30, b, 0, b), huge = sum_of(1e30, b, 0, b);
  CHECK(coefficients(of({a, tiny})) == Vector(2, 1.0));
  CHECK(coefficients(of({a, huge})) == Vector(2, 1.0));
  CHECK(distance(adasum_of(of({tiny, sum_of(1e-30, a, 0, a)})),
                 sum_of(1e-30, adasum_of(of({b, a})), 0, a)) < 1e-14);
}

TEST_CASE("powers of two in the vectors leave the bits of the coefficients") {
  for (const index_t n : {2, 5, 16}) {
    const Problem problem = mixed(n, 0.6);
    const Vector gram = problem.gram(), plain = coefficients(problem, gram);
    for (const int power : {-200, -7, 1, 200}) {
      Vector scaled = gram;
      for (double& number : scaled) number = std::ldexp(number, 2 * power);
      CHECK(coefficients(problem, scaled) == plain);
    }
  }
}

TEST_CASE("the square of the result is at most the sum of the squares") {
  for (index_t n = 2; n <= 24; ++n)
    for (const double shared : {0.0, 0.3, 2.0, -9.0}) {
      INFO(n << " vectors, shared part " << shared);
      Problem problem = mixed(n, shared, 5);
      std::fill(problem.leaves.begin(), problem.leaves.end(), 1.0);
      double squares = 0;
      for (const Vector& vector : problem.vectors) squares += dot(vector, vector);
      const Vector result = adasum_of(problem);
      CHECK(dot(result, result) <= squares * (1 + 1e-12));
    }
}

TEST_CASE("equal cosines give the law of the gain") {
  for (const index_t n : {1, 2, 4, 8, 16, 32, 64})
    for (const double cosine : {0.01, 0.2, 0.5, 0.9, 1.0}) {
      INFO(n << " vectors, cosine " << cosine);
      Problem problem;
      for (index_t i = 0; i < n; ++i) problem.add({});
      Vector gram(static_cast<std::size_t>(adasum::packed_size(n)), 3 * cosine);
      for (index_t i = 0; i < n; ++i)
        gram[static_cast<std::size_t>(adasum::packed_at(i, i, n))] = 3;
      const double expected = law(static_cast<double>(n), (1 - cosine) / cosine);
      for (const double c : coefficients(problem, gram))
        CHECK(c == Approx(expected / static_cast<double>(n)).epsilon(1e-13));
      CHECK(gain_of(problem, true, gram) == Approx(expected).epsilon(1e-13));
      CHECK(adasum::expected_gain(static_cast<double>(n), (1 - cosine) / cosine) ==
            Approx(expected).epsilon(1e-14));
    }
}

TEST_CASE("gradients with independent noise follow the law of the gain") {
  for (const double ratio : {0.25, 1.0, 4.0, 16.0})
    for (const int n : {2, 3, 4, 6, 8, 12, 16, 32}) {
      INFO(n << " vectors, noise " << ratio);
      const Problem problem = gaussian(Vector(static_cast<std::size_t>(n), 1.0), ratio);
      CHECK(gain_of(problem, true, problem.gram()) == Approx(law(n, ratio)).epsilon(0.02));
    }
}

TEST_CASE("uneven batches follow the law of their total") {
  const Vector weights = {0.4, 1.6, 0.8, 1.2, 1, 0.5, 1.5, 1};
  for (const double ratio : {1.0, 4.0, 16.0}) {
    INFO("noise " << ratio);
    const Problem problem = gaussian(weights, ratio);
    CHECK(gain_of(problem, false, problem.gram()) == Approx(law(8, ratio)).epsilon(0.02));
  }
}

TEST_CASE("the estimates of signal and noise have no bias") {
  constexpr std::size_t kDimensions = 12;
  constexpr int kTrials = 40000;
  const Vector weights = {0.25, 1, 3, 0.5, 2, 0}, signal = noise(kDimensions, 1);
  const auto sums = adasum::leaf_weights(weights.data(), 6);
  CHECK(sums.count == 5);
  adasum::NoiseEstimate of_gram, of_squares;
  for (int trial = 0; trial < kTrials; ++trial) {
    Problem problem;
    double leaf_square = 0;
    Vector mean(kDimensions);
    for (std::size_t i = 0; i < 5; ++i) {
      problem.add(sum_of(1, signal, 1.5 / std::sqrt(weights[i]),
                         noise(kDimensions, 1000 + static_cast<std::size_t>(trial) * 8 + i)),
                  weights[i]);
      leaf_square += weights[i] * dot(problem.vectors[i], problem.vectors[i]);
      mean = sum_of(1, mean, weights[i] / sums.total, problem.vectors[i]);
    }
    const Vector gram = problem.gram();
    const std::vector<int> live = all_live(problem);
    const auto by_gram = adasum::estimate_noise(gram.data(), 5, weights.data(), live.data(), 5);
    const auto by_squares = adasum::estimate_from_squares(leaf_square, dot(mean, mean), sums);
    of_gram.signal += by_gram.signal / kTrials, of_gram.noise += by_gram.noise / kTrials;
    of_squares.signal += by_squares.signal / kTrials,
        of_squares.noise += by_squares.noise / kTrials;
  }
  for (const auto& estimate : {of_gram, of_squares}) {
    CHECK(estimate.signal == Approx(dot(signal, signal)).epsilon(0.02));
    CHECK(estimate.noise == Approx(1.5 * 1.5 * kDimensions).epsilon(0.02));
  }
}
}  // namespace t3d
