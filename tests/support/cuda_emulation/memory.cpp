#include "memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace t3d::emulation {
namespace {

std::size_t number_from(const char* variable, std::size_t fallback) {
  const char* text = std::getenv(variable);
  return text == nullptr ? fallback : std::strtoul(text, nullptr, 10);
}

}  // namespace

MemoryTable::MemoryTable() : limit_(number_from("T3D_EMULATED_MEMORY_MIB", 65536) << 20) {}

MemoryTable& MemoryTable::instance() {
  static MemoryTable table;
  return table;
}

// The last byte lies before the guard page wherever that leaves an alignment of the greatest power
// of two in the size, 256 at most.
void* MemoryTable::allocate(std::size_t bytes, cudaMemoryType type) {
  const std::lock_guard lock(mutex_);
  if (type == cudaMemoryTypeDevice && used_ + bytes > limit_) return nullptr;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t body = (bytes + page - 1) / page * page + (bytes == 0 ? page : 0);
  void* mapping = mmap(nullptr, body + page, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  auto* start = static_cast<std::byte*>(mapping);
  mprotect(start + body, page, PROT_NONE);
  std::byte* data = start + body - bytes;
  std::memset(data, 0xFF, bytes);
  blocks_[data] = {start, body + page, bytes, type};
  if (type == cudaMemoryTypeDevice) used_ += bytes;
  return data;
}

bool MemoryTable::release(void* data, cudaMemoryType type) {
  if (data == nullptr) return true;
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(static_cast<const std::byte*>(data));
  if (found == blocks_.end() || found->second.type != type) return false;
  munmap(found->second.mapping, found->second.mapped);
  if (type == cudaMemoryTypeDevice) used_ -= found->second.bytes;
  blocks_.erase(found);
  return true;
}

cudaMemoryType MemoryTable::type_of(const void* data) {
  const std::lock_guard lock(mutex_);
  const auto* at = static_cast<const std::byte*>(data);
  auto found = blocks_.upper_bound(at);
  if (found == blocks_.begin()) return cudaMemoryTypeUnregistered;
  --found;
  return at < found->first + std::max<std::size_t>(found->second.bytes, 1)
             ? found->second.type
             : cudaMemoryTypeUnregistered;
}

}  // namespace t3d::emulation

using t3d::emulation::capturing;
using t3d::emulation::MemoryTable;
using t3d::emulation::note_error;

namespace {

cudaError_t allocate(void** data, std::size_t bytes, cudaMemoryType type) {
  *data = MemoryTable::instance().allocate(bytes, type);
  return *data == nullptr ? note_error(cudaErrorMemoryAllocation) : cudaSuccess;
}
// Freeing waits for whatever may still use the memory, as on a GPU.
cudaError_t release(void* data, cudaMemoryType type) {
  cudaDeviceSynchronize();
  return MemoryTable::instance().release(data, type) ? cudaSuccess
                                                     : note_error(cudaErrorInvalidValue);
}
void copy_rows(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
               std::size_t width, std::size_t height) {
  for (std::size_t row = 0; row < height; ++row)
    std::memmove(static_cast<std::byte*>(to) + row * to_pitch,
                 static_cast<const std::byte*>(from) + row * from_pitch, width);
}
int visible_devices() {
  const char* text = std::getenv("T3D_EMULATED_GPUS");
  return text == nullptr ? 1 : std::atoi(text);  // NOLINT
}

}  // namespace

cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  return allocate(data, bytes, cudaMemoryTypeDevice);
}
cudaError_t cudaFree(void* data) { return release(data, cudaMemoryTypeDevice); }
cudaError_t cudaMallocHost(void** data, std::size_t bytes) {
  return allocate(data, bytes, cudaMemoryTypeHost);
}
cudaError_t cudaFreeHost(void* data) { return release(data, cudaMemoryTypeHost); }
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *total = MemoryTable::instance().limit();
  *free = *total - MemoryTable::instance().used();
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* data) {
  *attributes = {};
  attributes->type = MemoryTable::instance().type_of(data);
  return cudaSuccess;
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                              std::size_t from_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind, cudaStream_t stream) {
  auto& memory = MemoryTable::instance();
  const bool from_pageable = memory.type_of(from) == cudaMemoryTypeUnregistered;
  const bool to_pageable = memory.type_of(to) == cudaMemoryTypeUnregistered;
  if ((from_pageable || to_pageable) && capturing(stream))
    return note_error(cudaErrorStreamCaptureUnsupported);
  if (from_pageable) {  // staged at the call
    std::string staged(width * height, '\0');
    copy_rows(staged.data(), width, from, from_pitch, width, height);
    return t3d::emulation::enqueue(stream, "a copy", [=, staged = std::move(staged)] {
      copy_rows(to, to_pitch, staged.data(), width, width, height);
    });
  }
  const cudaError_t status = t3d::emulation::enqueue(
      stream, "a copy", [=] { copy_rows(to, to_pitch, from, from_pitch, width, height); });
  return to_pageable && status == cudaSuccess ? cudaStreamSynchronize(stream) : status;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return cudaMemcpy2DAsync(to, bytes, from, bytes, bytes, 1, kind, stream);
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  const cudaError_t status = cudaDeviceSynchronize();
  if (status == cudaSuccess && bytes > 0) std::memmove(to, from, bytes);
  return status;
}
cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  const cudaError_t status = cudaDeviceSynchronize();
  if (status == cudaSuccess && bytes > 0) std::memset(to, value, bytes);
  return status;
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  return t3d::emulation::enqueue(stream, "a memset", [=] { std::memset(to, value, bytes); });
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = visible_devices();
  return *count == 0 ? note_error(cudaErrorNoDevice) : cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return device < visible_devices() ? cudaSuccess : note_error(cudaErrorInvalidDevice);
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  *properties = {};
  const char* name = std::getenv("T3D_EMULATED_NAME");
  std::snprintf(properties->name, sizeof properties->name, "%s",
                name == nullptr ? "emulated GPU" : name);
  properties->uuid.bytes[15] = static_cast<char>(device);
  properties->totalGlobalMem = MemoryTable::instance().limit();
  properties->major = 8;
  properties->multiProcessorCount = 4;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) {
  switch (which) {
    case cudaDevAttrMultiProcessorCount: *value = 4; break;
    case cudaDevAttrComputeCapabilityMajor: *value = 8; break;
    case cudaDevAttrComputeCapabilityMinor: *value = 0; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = 163 << 10; break;
    case cudaDevAttrL2CacheSize: *value = 1 << 20; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = 2048; break;
  }
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}

namespace {

std::map<const void*, int>& shared_limits() {
  static std::map<const void*, int> limits;
  return limits;
}
std::mutex limits_mutex;

}  // namespace

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute, int value) {
  constexpr int kOptIn = 227 << 10;  // of the largest GPU that we compile for
  if (value > kOptIn) return note_error(cudaErrorInvalidValue);
  const std::lock_guard lock(limits_mutex);
  shared_limits()[function] = value;
  return cudaSuccess;
}

cudaError_t t3d::emulation::check_launch(const cudaLaunchConfig_t& config, const void* kernel) {
  int limit = 48 << 10;
  {
    const std::lock_guard lock(limits_mutex);
    const auto found = shared_limits().find(kernel);
    if (found != shared_limits().end()) limit = std::max(limit, found->second);
  }
  const std::size_t threads =
      std::size_t{config.blockDim.x} * config.blockDim.y * config.blockDim.z;
  const bool grid = config.gridDim.x > 0 && config.gridDim.y > 0 && config.gridDim.z > 0 &&
                    config.gridDim.x <= 2147483647U && config.gridDim.y <= 65535 &&
                    config.gridDim.z <= 65535;
  const bool good = grid && threads > 0 && threads <= 1024 &&
                    config.dynamicSmemBytes <= static_cast<std::size_t>(limit);
  return good ? cudaSuccess : note_error(cudaErrorInvalidValue);
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInsufficientDriver: return "cudaErrorInsufficientDriver";
    case cudaErrorNoDevice: return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle: return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady: return "cudaErrorNotReady";
    case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure";
    case cudaErrorStreamCaptureUnsupported: return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated: return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureUnjoined: return "cudaErrorStreamCaptureUnjoined";
    case cudaErrorCapturedEvent: return "cudaErrorCapturedEvent";
    case cudaErrorGraphExecUpdateFailure: return "cudaErrorGraphExecUpdateFailure";
    default: return "another CUDA error";
  }
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorNoDevice ? "no CUDA-capable device is detected"
                                    : cudaGetErrorName(error);
}
