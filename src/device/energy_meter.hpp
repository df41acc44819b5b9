// Energy that this host takes, by the counters of its processors (RAPL, through the kernel's
// powercap) and of its GPUs (NVML). RAPL's counters begin anew after minutes under load, so they
// must be read now and then. Counted is all of the host, whoever uses it.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace t3d {

class EnergyMeter {
 public:
  /// Begins to count. Files are looked for under `root` (tests).
  explicit EnergyMeter(const std::string& root = "");
  /// Reads the counters: at least once a minute.
  void sample();
  /// Since the begin; nothing where there is no counter or it may not be read.
  [[nodiscard]] std::optional<double> cpu_joules() const;
  [[nodiscard]] std::optional<double> gpu_joules() const;
  /// Why there are no joules of the processors; empty where there are.
  [[nodiscard]] const std::string& why_no_cpu() const { return why_no_cpu_; }

 private:
  struct Counter {
    std::string file;
    double most = 0;  // microjoules at which it begins anew
    double last = 0, sum = 0;
  };
  void find_counters(const std::string& root);

  std::vector<Counter> counters_;
  std::string why_no_cpu_;
  std::optional<double> gpu_begin_, gpu_last_;
};

}  // namespace t3d
