#include <cstdlib>
#include <utility>

#include "nvtx3/nvToolsExt.h"

struct nvtxDomainRegistration_st {
  std::string name;
};

namespace {

thread_local std::vector<t3d::emulation::NvtxRange> ranges;
thread_local int open_now = 0;

}  // namespace

nvtxDomainHandle_t nvtxDomainCreateA(const char* name) {
  if (std::getenv("T3D_EMULATED_NVTX") == nullptr) return nullptr;
  return new nvtxDomainRegistration_st{name};  // NOLINT
}

void nvtxDomainDestroy(nvtxDomainHandle_t domain) {
  delete domain;  // NOLINT
}

int nvtxDomainRangePushEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  const bool right = attributes->version == NVTX_VERSION &&
                     attributes->size == NVTX_EVENT_ATTRIB_STRUCT_SIZE &&
                     attributes->messageType == NVTX_MESSAGE_TYPE_ASCII;
  ranges.push_back({domain->name, right ? attributes->message.ascii : "?", open_now});
  return open_now++;
}

int nvtxDomainRangePop(nvtxDomainHandle_t domain) {
  if (open_now == 0)
    ranges.push_back({domain->name, "?", -1});
  else
    --open_now;
  return open_now;
}

namespace t3d::emulation {

std::vector<NvtxRange> take_nvtx_ranges() { return std::exchange(ranges, {}); }
int open_nvtx_ranges() { return open_now; }

}  // namespace t3d::emulation
