// What steps say about a forecast's terms (forecast/factor_filter.hpp).
#include "forecast/factor_filter.hpp"

#include "support/catch.hpp"

using namespace t3d;

namespace {

ForecastTerms terms_of(double compute, double inside, double between) {
  ForecastTerms terms;
  terms.operators[0] = compute;
  terms.inside[0] = inside;
  terms.between[0] = between;
  return terms;
}

ForecastFactors after(int steps, const ForecastTerms& terms, double own, double seconds) {
  FactorFilter filter;
  for (int step = 0; step < steps; ++step) filter.add(terms, own, seconds);
  CHECK(filter.steps() == steps);
  return filter.factors();
}

}  // namespace

TEST_CASE("twenty steps of a plan say how long its own steps are") {
  const ForecastTerms terms = terms_of(0.8, 0.3, 0.1);
  const double own = 1.3 * 0.8, seconds = own + 1.4 * 0.3 + 1.4 * 0.1;
  const ForecastFactors factors = after(20, terms, own, seconds);
  CHECK(factors.compute == Approx(1.3).epsilon(0.01));
  CHECK(terms.sum(factors) == Approx(seconds).epsilon(0.01));
}

TEST_CASE("waiting of a plan with few messages is not taken for slow messages") {
  // 2 % of the step are messages as forecast, 6 % are waiting: another plan with messages of 40 %
  // waits no longer.
  const double seconds = 1 / 0.94;
  const ForecastFactors factors = after(20, terms_of(0.98, 0.02, 0), 0.98, seconds);
  CHECK(factors.waiting == Approx(0.06).margin(0.01));
  CHECK(terms_of(0.6, 0.4, 0).sum(factors) == Approx(seconds).epsilon(0.05));
}

TEST_CASE("messages that are slow in a plan with many are called slow") {
  const ForecastFactors factors = after(20, terms_of(0.5, 0, 0.5), 0.5, 0.5 + 2 * 0.5);
  CHECK(factors.between > 1.7);
  CHECK(factors.waiting < 0.1);
  CHECK(factors.inside == 1);
}

TEST_CASE("factors follow a machine that changes") {
  FactorFilter filter;
  const ForecastTerms terms = terms_of(1, 0, 0);
  for (int step = 0; step < 200; ++step) filter.add(terms, 1, 1);
  for (int step = 0; step < 100; ++step) filter.add(terms, 1.5, 1.5);
  CHECK(filter.factors().compute == Approx(1.5).epsilon(0.1));
  CHECK(filter.factors().waiting == 0);
}
