// cluster.toml, as calibrate, plan and runs read it: what is read is written and read again, to the
// byte, and its tables answer.
#include "forecast/cluster/cluster_file.hpp"
#include "forecast/cluster/run_factors.hpp"
#include "fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string text(t3d::test::as_text(data, bytes));
  t3d::test::expect_answer([&] {
    std::vector<std::string> notes;
    const t3d::Cluster cluster = t3d::parse_cluster(text, "f", &notes);
    const std::string again = t3d::cluster_text(cluster);
    if (t3d::cluster_text(t3d::parse_cluster(again, "g")) != again) std::abort();
    (void)t3d::joined(cluster, t3d::corrected_by_runs(cluster));
  });
  return 0;
}
