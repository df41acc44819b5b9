// The noise scale as a law of the step, and sizes over a run made from it.
#include <cmath>

#include "core/random.hpp"
#include "forecast/elastic/elastic_schedule.hpp"
#include "support/catch.hpp"

using namespace t3d;

namespace {

/// As a log has it: single steps say little, and many are below 0.
std::vector<NoiseStep> measured(double scale, double exponent, index_t steps, double batch) {
  std::vector<NoiseStep> all;
  for (index_t step = 1; step <= steps; ++step) {
    const auto at = static_cast<double>(step);
    const double signal = 4 / std::sqrt(at), noise = scale * std::pow(at, exponent) * signal;
    all.push_back({at, batch, signal * (1 + 3 * random_normal({1, 0}, step)),
                   noise * (1 + 0.3 * random_normal({2, 0}, step))});
  }
  return all;
}

double sum(const std::vector<Stretch>& stretches, double Stretch::*of) {
  double all = 0;
  for (const Stretch& one : stretches) all += one.*of;
  return all;
}

/// Small nodes, large nodes, with two batches each; twice the nodes are 1.8 times as fast.
std::vector<ElasticSize> four_sizes(double queue_hours = 0) {
  std::vector<ElasticSize> sizes;
  for (const double batch : {64.0, 256.0})
    for (const double nodes : {1.0, 8.0}) {
      ElasticSize size;
      size.batch = batch;
      // A part of the step that more nodes do not shorten.
      size.step_seconds = 0.1 + batch / 64 / std::pow(nodes, 0.9);
      size.price_per_hour = nodes;
      size.hours_factor = 1.05;
      size.cost_factor = 1.02;
      size.queue_hours = queue_hours;
      size.restart_hours = 0.01;
      sizes.push_back(size);
    }
  return sizes;
}

std::vector<Stretch> growing(int count) {
  NoiseLaw law;
  law.exponent = 0.8;
  law.scale = 800 / std::pow(20000, law.exponent);
  law.sequences = 64;
  return stretches_of(law, 20000, 64, count);
}

/// Of all choices for few stretches, the least hours or cost.
double least_of_all(const std::vector<Stretch>& stretches, const std::vector<ElasticSize>& sizes,
                    double ElasticSchedule::*of) {
  std::vector<std::size_t> choice(stretches.size(), 0);
  double least = std::numeric_limits<double>::infinity();
  for (;;) {
    least = std::min(least, schedule_of(stretches, sizes, choice).*of);
    std::size_t at = 0;
    while (at < choice.size() && ++choice[at] == sizes.size()) choice[at++] = 0;
    if (at == choice.size()) return least;
  }
}

}  // namespace

TEST_CASE("a law is found in measurements that say little one by one", "[elastic]") {
  for (const double exponent : {0.0, 0.5, 1.0}) {
    NoiseLaw law;
    REQUIRE(fit_noise(measured(10, exponent, 4000, 64), law));
    INFO("exponent " << exponent << ", found " << law.exponent << ", scale " << law.scale);
    CHECK(law.exponent == Approx(exponent).margin(0.1));
    CHECK(law.at(1000) == Approx(10 * std::pow(1000, exponent)).epsilon(0.1));
    CHECK(law.steps == 4000);
    CHECK(law.sequences == 64);
    CHECK(law.spread < 1.3);
  }
  // Lives that repeat steps, in any order.
  std::vector<NoiseStep> twice = measured(10, 0.5, 1000, 64), again = twice;
  twice.insert(twice.begin(), again.begin() + 500, again.end());
  NoiseLaw law;
  REQUIRE(fit_noise(twice, law));
  CHECK(law.exponent == Approx(0.5).margin(0.12));
}

TEST_CASE("what shows no signal has no law", "[elastic]") {
  NoiseLaw law;
  CHECK_FALSE(fit_noise({}, law));
  std::vector<NoiseStep> steps = measured(10, 0.5, 200, 64);
  for (NoiseStep& one : steps) one.signal = -one.signal;
  CHECK_FALSE(fit_noise(steps, law));
  // One step with both is a number without growth.
  REQUIRE(fit_noise({{7, 32, 2, 50}}, law));
  CHECK(law.exponent == 0);
  CHECK(law.at(1) == Approx(25));
}

TEST_CASE("steps to the same progress follow the noise scale", "[elastic]") {
  NoiseLaw law;
  law.scale = 96;
  law.sequences = 32;
  const std::vector<Stretch> stretches = stretches_of(law, 1000, 32, 7);
  CHECK(sum(stretches, &Stretch::steps) == Approx(1000));
  CHECK(sum(stretches, &Stretch::progress) == Approx(1000 / (1 + 96.0 / 32)));
  CHECK(stretches[3].steps_of(32) == Approx(stretches[3].steps));
  CHECK(stretches[3].steps_of(96) == Approx(stretches[3].steps * 2 / 4));
  CHECK(stretches[3].steps_of(1e12) == Approx(stretches[3].progress));
}

TEST_CASE("a law of another batch is taken by progress", "[elastic]") {
  // The same training with a batch four times as large is at the same noise scale earlier.
  NoiseLaw law;
  law.exponent = 0.7;
  law.scale = 2;
  law.sequences = 32;
  const std::vector<Stretch> own = stretches_of(law, 4000, 32, 40);
  double steps = 0;
  for (const Stretch& one : own) steps += one.steps_of(128);
  const std::vector<Stretch> other = stretches_of(law, steps, 128, 40);
  CHECK(sum(other, &Stretch::progress) == Approx(sum(own, &Stretch::progress)).epsilon(1e-3));
  CHECK(other.back().noise == Approx(own.back().noise).epsilon(0.05));
}

TEST_CASE("the cheapest and the soonest schedule are those of trying all", "[elastic]") {
  const std::vector<Stretch> stretches = growing(5);
  for (const double queue : {0.0, 0.3, 5.0}) {
    const std::vector<ElasticSize> sizes = four_sizes(queue);
    INFO("hours in the queue: " << queue);
    CHECK(best_schedule(stretches, sizes, {}, true).cost ==
          Approx(least_of_all(stretches, sizes, &ElasticSchedule::cost)).epsilon(1e-12));
    CHECK(best_schedule(stretches, sizes, {}, false).hours ==
          Approx(least_of_all(stretches, sizes, &ElasticSchedule::hours)).epsilon(1e-12));
  }
}

TEST_CASE("within limits a schedule is better than any one size", "[elastic]") {
  const std::vector<Stretch> stretches = growing(48);
  const std::vector<ElasticSize> sizes = four_sizes();
  const ElasticSchedule small = fixed_schedule(stretches, sizes, 0);
  const ElasticSchedule planned = fixed_schedule(stretches, sizes, 1);
  ElasticLimits limits;
  limits.cost = planned.cost;
  const ElasticSchedule fixed = best_fixed(stretches, sizes, limits, false);
  const ElasticSchedule best = best_schedule(stretches, sizes, limits, false);
  CHECK(best.cost <= planned.cost * (1 + 1e-9));
  CHECK(best.hours < 0.97 * fixed.hours);
  CHECK(best.phases.size() > 1);
  CHECK(best.phases.size() <= kMostPhases);
  double hours = 0, progress = 0;
  for (std::size_t at = 0; at < best.phases.size(); ++at) {
    hours += best.phases[at].hours;
    progress += best.phases[at].progress;
    if (at > 0) CHECK(sizes[best.phases[at].size].batch >= sizes[best.phases[at - 1].size].batch);
  }
  CHECK(hours == Approx(best.hours));
  CHECK(progress == Approx(sum(stretches, &Stretch::progress)));
  // A change costs more than it brings.
  CHECK(best_schedule(stretches, four_sizes(1e6), {}, false).phases.size() == 1);
  limits.cost = 0.5 * small.cost;
  limits.hours = 0.5 * best.hours;
  CHECK(best_schedule(stretches, sizes, limits, false).phases.empty());
}
