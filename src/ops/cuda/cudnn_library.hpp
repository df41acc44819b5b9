// libcudnn at run time: found by dlopen, so that the program starts where it is absent. All calls
// go through a small table of function pointers.
#pragma once
#include <cudnn_backend.h>

#include <initializer_list>
#include <string>
#include <string_view>

namespace t3d::cuda {

struct CudnnFunctions {
  decltype(&cudnnGetVersion) version = nullptr;
  decltype(&cudnnGetErrorString) error_string = nullptr;
  decltype(&cudnnCreate) create = nullptr;
  decltype(&cudnnDestroy) destroy = nullptr;
  decltype(&cudnnSetStream) set_stream = nullptr;
  decltype(&cudnnBackendCreateDescriptor) create_descriptor = nullptr;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor = nullptr;
  decltype(&cudnnBackendSetAttribute) set_attribute = nullptr;
  decltype(&cudnnBackendGetAttribute) get_attribute = nullptr;
  decltype(&cudnnBackendFinalize) finalize = nullptr;
  decltype(&cudnnBackendExecute) execute = nullptr;
};

/// The first of `names` that the loader finds and that has all functions. It stays in memory.
/// Throws Error(unavailable) with the loader's words where there is none.
[[nodiscard]] CudnnFunctions load_cudnn(std::initializer_list<const char*> names = {
                                            "libcudnn_graph.so.9", "libcudnn.so.9"});

/// cuDNN numbers its versions 10000 major + 100 minor + patch.
[[nodiscard]] constexpr int cudnn_version(int major, int minor, int patch = 0) {
  return 10000 * major + 100 * minor + patch;
}
[[nodiscard]] inline int version_of(const CudnnFunctions& functions) {
  return static_cast<int>(functions.version());
}
/// "9.19.0"
[[nodiscard]] std::string cudnn_version_text(int version);

/// One context of the library on the current device. For one thread.
class CudnnHandle {
 public:
  explicit CudnnHandle(const CudnnFunctions& functions);
  ~CudnnHandle();
  CudnnHandle(const CudnnHandle&) = delete;
  CudnnHandle& operator=(const CudnnHandle&) = delete;

  [[nodiscard]] cudnnHandle_t get() const { return handle_; }

 private:
  CudnnFunctions functions_;
  cudnnHandle_t handle_ = nullptr;
};

/// Throws Error(unavailable): for whatever cuDNN refuses there are other engines.
void check_cudnn(const CudnnFunctions& functions, cudnnStatus_t status, std::string_view what);

}  // namespace t3d::cuda
