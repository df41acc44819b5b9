// Nodes from data sheets.
#include "forecast/cluster/cluster_presets.hpp"

#include "support/catch.hpp"

using namespace t3d;

TEST_CASE("what a sheet calls 80 GB the driver counts as GiB") {
  const auto memory_mib = [](const char* preset) {
    return cluster_of_presets({preset}).classes.front().memory_bytes / (1 << 20);
  };
  // nvidia-smi: 81,559 MiB of an H100, 46,068 MiB of an L40S.
  CHECK(memory_mib("h100") == 80 * 1024);
  CHECK(memory_mib("l40s") == 45 * 1024);
}
