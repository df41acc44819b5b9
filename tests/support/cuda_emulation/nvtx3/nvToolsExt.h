// NVTX as the program uses it, with a tool that notes every range where T3D_EMULATED_NVTX is set.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#define NVTX_VERSION 3
#define NVTX_MESSAGE_TYPE_ASCII 1
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE (static_cast<std::uint16_t>(sizeof(nvtxEventAttributes_t)))

struct nvtxDomainRegistration_st;
using nvtxDomainHandle_t = nvtxDomainRegistration_st*;
struct nvtxEventAttributes_t {
  std::uint16_t version, size;
  std::int32_t messageType;
  union {
    const char* ascii;
  } message;
};

/// Null where no tool looks.
nvtxDomainHandle_t nvtxDomainCreateA(const char* name);
void nvtxDomainDestroy(nvtxDomainHandle_t domain);
int nvtxDomainRangePushEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes);
int nvtxDomainRangePop(nvtxDomainHandle_t domain);

namespace t3d::emulation {
/// A range of this thread, with how many it lies in; -1: ended where none was open.
struct NvtxRange {
  std::string domain, name;
  int depth = 0;
};
/// Those that have begun since the last call, and how many are open.
std::vector<NvtxRange> take_nvtx_ranges();
int open_nvtx_ranges();
}  // namespace t3d::emulation
