#include "device/energy_meter.hpp"

#include <cstdlib>
#include <filesystem>

#include "device/control_groups.hpp"
#include "device/nvml.hpp"

namespace t3d {
namespace {

/// Of a file with one number; nothing where it cannot be read.
std::optional<double> number_in_file(const std::string& path) {
  const std::string text = file_text(path);
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) return std::nullopt;
  return number;
}

}  // namespace

EnergyMeter::EnergyMeter(const std::string& root) : gpu_begin_(nvml_joules()) {
  gpu_last_ = gpu_begin_;
  find_counters(root);
}

// One folder for each processor, "intel-rapl:0" (AMD's too); those inside it ("intel-rapl:0:0") are
// parts of it. Since 2020 the kernel lets only root read them.
void EnergyMeter::find_counters(const std::string& root) {
  const std::string folder = root + "/sys/class/powercap";
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    const std::size_t colon = name.find(':');
    if (!name.starts_with("intel-rapl:") || name.find(':', colon + 1) != std::string::npos)
      continue;
    const std::string path = at->path().string();
    const auto now = number_in_file(path + "/energy_uj");
    const auto most = number_in_file(path + "/max_energy_range_uj");
    if (!now || !most) {
      why_no_cpu_ = path + "/energy_uj may not be read";
      counters_.clear();
      return;
    }
    counters_.push_back({path + "/energy_uj", *most, *now, 0});
  }
  if (counters_.empty()) why_no_cpu_ = "the kernel shows no RAPL counters";
}

void EnergyMeter::sample() {
  for (Counter& counter : counters_) {
    const double now = number_in_file(counter.file).value_or(counter.last);
    counter.sum += now - counter.last + (now < counter.last ? counter.most : 0);
    counter.last = now;
  }
  if (gpu_begin_) gpu_last_ = nvml_joules();
}

std::optional<double> EnergyMeter::cpu_joules() const {
  if (counters_.empty()) return std::nullopt;
  double joules = 0;
  for (const Counter& counter : counters_) joules += 1e-6 * counter.sum;
  return joules;
}

std::optional<double> EnergyMeter::gpu_joules() const {
  if (!gpu_begin_ || !gpu_last_) return std::nullopt;
  return *gpu_last_ - *gpu_begin_;
}

}  // namespace t3d
