// step_factors.json of a run, as calibrate --from-run reads it; what is read is written and read
// again.
#include "tools/step_factors.hpp"

#include "fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string text(t3d::test::as_text(data, bytes));
  t3d::test::expect_answer([&] {
    const std::string again = t3d::step_factors_text(t3d::parse_step_factors(text, "f"));
    if (t3d::step_factors_text(t3d::parse_step_factors(again, "g")) != again) std::abort();
  });
  return 0;
}
