#include "ops/cuda/cudnn_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "core/error.hpp"

namespace t3d::cuda {
namespace {

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool find_all(void* library, CudnnFunctions& f) {
  return find(library, "cudnnGetVersion", f.version) &&
         find(library, "cudnnGetErrorString", f.error_string) &&
         find(library, "cudnnCreate", f.create) && find(library, "cudnnDestroy", f.destroy) &&
         find(library, "cudnnSetStream", f.set_stream) &&
         find(library, "cudnnBackendCreateDescriptor", f.create_descriptor) &&
         find(library, "cudnnBackendDestroyDescriptor", f.destroy_descriptor) &&
         find(library, "cudnnBackendSetAttribute", f.set_attribute) &&
         find(library, "cudnnBackendGetAttribute", f.get_attribute) &&
         find(library, "cudnnBackendFinalize", f.finalize) &&
         find(library, "cudnnBackendExecute", f.execute);
}

}  // namespace

CudnnFunctions load_cudnn(std::initializer_list<const char*> names) {
  std::string reasons;
  for (const char* name : names) {
    CudnnFunctions functions;
    void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr && find_all(library, functions)) return functions;
    const char* reason = dlerror();
    reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ", reason != nullptr ? reason : name);
    if (library != nullptr) dlclose(library);
  }
  throw_error(ExitCode::unavailable, "cuDNN does not load: {}", reasons);
}

std::string cudnn_version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

CudnnHandle::CudnnHandle(const CudnnFunctions& functions) : functions_(functions) {
  check_cudnn(functions_, functions_.create(&handle_), "the start");
}

CudnnHandle::~CudnnHandle() { functions_.destroy(handle_); }

void check_cudnn(const CudnnFunctions& functions, cudnnStatus_t status, std::string_view what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw_error(ExitCode::unavailable, "cuDNN: {} failed: {}", what, functions.error_string(status));
}

}  // namespace t3d::cuda
