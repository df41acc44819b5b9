// Job plans, as `simulate` reads them: what is read is written and read again, and lives a little.
#include "forecast/simulate/job_plan.hpp"
#include "forecast/simulate/many_lives.hpp"
#include "fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string text(t3d::test::as_text(data, bytes));
  t3d::test::expect_answer([&] {
    const t3d::SimulatedJob job = t3d::parse_job_plan(text, "f");
    const std::string again = t3d::job_plan_text(job);
    if (t3d::job_plan_text(t3d::parse_job_plan(again, "g")) != again) std::abort();
    const auto source = t3d::sampled_nodes(job, t3d::wanted_nodes(job, job.policy), 1, 0);
    const t3d::JobOutcome outcome = t3d::simulate_life(job, job.policy, *source, {}, {1e7, 2000});
    double sum = 0;
    for (const double part : outcome.parts) sum += part;
    if (!(sum <= 1.001 * outcome.seconds + 1) || !(outcome.cost >= 0)) std::abort();
  });
  return 0;
}
