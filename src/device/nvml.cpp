#include "device/nvml.hpp"

#include <dlfcn.h>

#include <array>

namespace t3d {
namespace {

// NVML's C interface, as its manual has it (nvml.h of the toolkit, API version 2): 0 = success.
using GpuHandle = void*;
struct Memory {
  unsigned long long total, free, used;
};

struct Nvml {
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, GpuHandle*) = nullptr;
  int (*name)(GpuHandle, char*, unsigned) = nullptr;
  int (*identity)(GpuHandle, char*, unsigned) = nullptr;
  int (*memory)(GpuHandle, Memory*) = nullptr;
  int (*energy)(GpuHandle, unsigned long long*) = nullptr;  // millijoules
  int (*driver)(char*, unsigned) = nullptr;
  bool there = false;
};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

Nvml load() {
  Nvml nvml;
  void* const library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);  // stays
  if (library == nullptr) return nvml;
  int (*init)() = nullptr;
  nvml.there = find(library, "nvmlInit_v2", init) &&
               find(library, "nvmlDeviceGetCount_v2", nvml.count) &&
               find(library, "nvmlDeviceGetHandleByIndex_v2", nvml.handle) &&
               find(library, "nvmlDeviceGetName", nvml.name) &&
               find(library, "nvmlDeviceGetUUID", nvml.identity) &&
               find(library, "nvmlDeviceGetMemoryInfo", nvml.memory) &&
               find(library, "nvmlDeviceGetTotalEnergyConsumption", nvml.energy) &&
               find(library, "nvmlSystemGetDriverVersion", nvml.driver) && init() == 0;
  return nvml;
}

const Nvml& nvml() {
  static const Nvml loaded = load();
  return loaded;
}

std::vector<GpuHandle> devices() {
  unsigned count = 0;
  std::vector<GpuHandle> found;
  if (!nvml().there || nvml().count(&count) != 0) return found;
  for (unsigned at = 0; at < count; ++at) {
    GpuHandle device = nullptr;
    if (nvml().handle(at, &device) == 0) found.push_back(device);
  }
  return found;
}

}  // namespace

std::vector<GpuFacts> nvml_gpus() {
  std::vector<GpuFacts> gpus;
  for (GpuHandle device : devices()) {
    std::array<char, 256> name{}, identity{}, driver{};
    constexpr auto kSize = static_cast<unsigned>(name.size());
    Memory memory{};
    (void)nvml().name(device, name.data(), kSize);
    (void)nvml().identity(device, identity.data(), kSize);
    (void)nvml().driver(driver.data(), kSize);
    (void)nvml().memory(device, &memory);
    gpus.push_back(
        {name.data(), identity.data(), driver.data(), static_cast<index_t>(memory.total)});
  }
  return gpus;
}

std::optional<double> nvml_joules() {
  double joules = 0;
  const std::vector<GpuHandle> all = devices();
  for (GpuHandle device : all) {
    unsigned long long millijoules = 0;
    if (nvml().energy(device, &millijoules) != 0) return std::nullopt;
    joules += 1e-3 * static_cast<double>(millijoules);
  }
  if (all.empty()) return std::nullopt;
  return joules;
}

}  // namespace t3d
