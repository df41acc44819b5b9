// Shapes that a calibration measures, and what storage and start-up times are between measurements.
#include <set>

#include "forecast/calibrate/measure_operators.hpp"
#include "forecast/calibrate/operator_shapes.hpp"
#include "support/catch.hpp"

using namespace t3d;

TEST_CASE("shapes are different, within their limits, thin ones and all products among them") {
  const ShapeLimits most{2e9, 64e6};
  for (std::size_t kind = 0; kind < kOperatorKinds; ++kind) {
    const auto which = static_cast<OperatorKind>(kind);
    const std::vector<OperatorShape> shapes = operator_shapes(which, 48, most);
    INFO(word_of(which));
    REQUIRE(shapes.size() == 48);
    CHECK(std::set(shapes.begin(), shapes.end()).size() >= 40);
    for (const OperatorShape& shape : shapes) {
      CHECK(term_counts(which, shape)[1] <= most.work);
      CHECK(operand_bytes(which, 4, shape) <= 1.3 * most.bytes);
    }
  }
  int thin = 0, transposed_a = 0, transposed_b = 0;
  for (const OperatorShape& shape : operator_shapes(OperatorKind::matmul, 48, most)) {
    thin += std::min({shape[0], shape[1], shape[2]}) < 64 ? 1 : 0;
    transposed_a += shape[3] != 0 ? 1 : 0;
    transposed_b += shape[4] != 0 ? 1 : 0;
  }
  CHECK(thin >= 8);
  CHECK(thin <= 40);
  CHECK(transposed_a == 16);
  CHECK(transposed_b == 16);
  CHECK(operator_shapes(OperatorKind::matmul, 9, {1, 1}).size() == 1);
}

TEST_CASE("several ranks' samples: the median, shapes that all have") {
  const auto sample = [](double m, double seconds) {
    return Sample{{m, 1, 1, 0, 0}, seconds, 0.01 * seconds};
  };
  const auto medians =
      median_samples({{sample(8, 1), sample(16, 2)}, {sample(8, 3)}, {sample(8, 2)}});
  REQUIRE(medians.size() == 1);
  CHECK(medians[0].seconds == 2);
  CHECK(medians[0].error > 0.5);  // what the ranks differ
  CHECK(median_samples({}).empty());
}

TEST_CASE("files and starts between measurements") {
  Storage storage;
  CHECK(storage.write_seconds(1e9, 4) == 0);
  storage.latency_seconds = 0.5;
  storage.writes = {{1, 1e9, 0}, {4, 3e9, 0}, {16, 3.1e9, 0}};
  CHECK(storage.write_seconds(1e9, 1) == 1.5);
  CHECK(storage.write_seconds(2e9, 2) == 1.5);  // half way in the logarithm: 2e9
  CHECK(storage.write_seconds(3.1e9, 64) == 1.5);
  Startup startup;
  CHECK(startup.seconds(8) == 0);
  startup.starts = {{2, 1, 0}};
  CHECK(startup.seconds(8) == 1);
  startup.starts = {{2, 1, 0}, {8, 2, 0}, {16, 4, 0}};
  CHECK(startup.seconds(4) == 1.5);
  CHECK(startup.seconds(32) == 6);
  CHECK(startup.seconds(1) == 1);
}
