#include "device/cuda/cuda_ranges.hpp"

#include <nvtx3/nvToolsExt.h>

namespace t3d {
namespace {

class NvtxRanges final : public Ranges {
 public:
  explicit NvtxRanges(nvtxDomainHandle_t domain) : domain_(domain) {}
  ~NvtxRanges() override { nvtxDomainDestroy(domain_); }
  NvtxRanges(const NvtxRanges&) = delete;
  NvtxRanges& operator=(const NvtxRanges&) = delete;

  void begin(const std::string& name) override {
    nvtxEventAttributes_t attributes{};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = name.c_str();
    nvtxDomainRangePushEx(domain_, &attributes);
  }
  void end() override { nvtxDomainRangePop(domain_); }

 private:
  nvtxDomainHandle_t domain_;
};

}  // namespace

// NVTX gives no handle where no tool was loaded into the process.
std::unique_ptr<Ranges> make_cuda_ranges() {
  nvtxDomainHandle_t domain = nvtxDomainCreateA("transformer3d");
  if (domain == nullptr) return nullptr;
  return std::make_unique<NvtxRanges>(domain);
}

}  // namespace t3d
