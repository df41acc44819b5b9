// Hazards: their integrals, what is sampled from them, what a history makes of them.
#include "forecast/simulate/hazard.hpp"

#include <algorithm>
#include <cmath>

#include "support/catch.hpp"
#include "unit/forecast/simulate/job_rig.hpp"

namespace t3d::test {
namespace {

const std::vector<Hazard>& all_forms() {
  static const std::vector<Hazard> forms{Hazard::weibull(0.32, 110), Hazard::weibull(0.32, 110, 1),
                                         Hazard::weibull(2, 5), Hazard::constant(0.05),
                                         Hazard::of_buckets({{0, 0.3}, {1, 0.01}, {24, 2}})};
  return forms;
}

/// The ages at which `nodes` equal nodes are lost, ascending.
std::vector<double> sampled_ages(const Hazard& hazard, index_t nodes) {
  SimulatedJob job = small_job();
  job.classes[0].hazard = hazard;
  job.classes[0].return_seconds = kNoTime;
  const auto source = sampled_nodes(job, {nodes}, 11, 0);
  std::vector<NodeEvent> events;
  source->begin(7200, events);
  std::vector<double> ages;
  while (source->next() < kNoTime) {
    ages.push_back((source->next() - 7200) / 3600);
    source->take(events);
  }
  return ages;
}

TEST_CASE("the age at which the hazard has summed up to something is the inverse of its sum") {
  for (const Hazard& hazard : all_forms())
    for (const double age : {1e-3, 0.4, 1.0, 3.7, 24.0, 300.0}) {
      CHECK(hazard.age_at(hazard.cumulative(age)) == Approx(age).epsilon(1e-9));
      const double slope =
          (hazard.cumulative(age * 1.0001 + 1e-6) - hazard.cumulative(age)) / (age * 0.0001 + 1e-6);
      if (age > 0.1) CHECK(hazard.per_hour(age) == Approx(slope).epsilon(1e-3));
    }
  CHECK(Hazard().age_at(1e-9) == kNoTime);
  CHECK(Hazard::of_buckets({{0, 1}, {2, 0}}).age_at(2.5) == kNoTime);
}

TEST_CASE("nodes are lost at the ages that the distribution says") {
  constexpr index_t kNodes = 4000;
  for (const Hazard& hazard : all_forms()) {
    const std::vector<double> ages = sampled_ages(hazard, kNodes);
    REQUIRE(std::ssize(ages) == kNodes);
    CHECK(std::is_sorted(ages.begin(), ages.end()));
    double distance = 0;  // Kolmogorov and Smirnov's
    for (std::size_t at = 0; at < ages.size(); ++at) {
      const double cdf = 1 - std::exp(-hazard.cumulative(ages[at]));
      distance = std::max(
          {distance, std::abs(cdf - double(at) / kNodes), std::abs(cdf - double(at + 1) / kNodes)});
    }
    CHECK(distance < 1.63 / std::sqrt(double(kNodes)));  // 99 of 100 samples
  }
}

TEST_CASE("a history moves the hazard by what it saw, bucket by bucket") {
  const Hazard prior = Hazard::constant(0.1);
  // Two lost in their first hour, one seen for three hours.
  const std::vector<NodeLife> lives{{0.5, true}, {0.25, true}, {3, false}};
  const Hazard after = update_hazard(prior, lives, 2);
  CHECK(after.per_hour(0.5) == Approx((2.0 + 2) / (2 / 0.1 + 1.75)));
  CHECK(after.per_hour(1.5) == Approx(2.0 / (2 / 0.1 + 1)));
  CHECK(after.per_hour(30) == Approx(0.1));

  std::vector<NodeLife> many;
  for (const double age : sampled_ages(Hazard::constant(0.02), 20000))
    many.push_back({std::min(age, 24.0), age < 24});
  const Hazard learnt = update_hazard(Hazard::weibull(0.32, 110, 1), many);
  for (const double age : {0.5, 3.0, 10.0, 20.0})
    CHECK(learnt.per_hour(age) == Approx(0.02).epsilon(0.1));
  CHECK(update_hazard(Hazard(), many).per_hour(10) == Approx(0.02).epsilon(0.1));
}

TEST_CASE("published hazards give the published shares of nodes lost in 24 hours") {
  // 72 of 156, 65 of 120, 69 of 120 servers.
  CHECK(1 - std::exp(-published_hazard("K80")->cumulative(24)) == Approx(0.46).margin(0.02));
  CHECK(1 - std::exp(-published_hazard("P100")->cumulative(24)) == Approx(0.54).margin(0.02));
  CHECK(1 - std::exp(-published_hazard("V100")->cumulative(24)) == Approx(0.575).margin(0.02));
  CHECK_FALSE(published_hazard("A100"));
}

}  // namespace
}  // namespace t3d::test
