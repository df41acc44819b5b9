#include "comm/nccl/handle.hpp"

#include <exception>
#include <utility>

namespace t3d::nccl {

ExitCode code_of(ncclResult_t result) {
  return result == ncclRemoteError || result == ncclSystemError ? ExitCode::peer_lost
                                                                : ExitCode::internal;
}

void check(ncclResult_t result, std::string_view what) {
  if (result == ncclSuccess) return;
  const char* words = ncclGetLastError(nullptr);
  throw_error(code_of(result), "{} failed: {}{}{}", what, ncclGetErrorString(result),
              words != nullptr && *words != '\0' ? ": " : "", words != nullptr ? words : "");
}

ncclDataType_t type_of(DType type) {
  switch (type) {
    case DType::f64: return ncclFloat64;
    case DType::f32: return ncclFloat32;
    case DType::bf16: return ncclBfloat16;
    case DType::f16: return ncclFloat16;
    case DType::i32: return ncclInt32;
  }
  throw_error(ExitCode::internal, "NCCL has no {}", name_of(type));
}

Handle::~Handle() {
  // While an error unwinds nobody may wait for peers.
  if (std::uncaught_exceptions() > 0) abort();
  if (comm_ != nullptr) ncclCommDestroy(comm_);
}

ncclResult_t Handle::asynchronous_error() const {
  ncclResult_t state = ncclSuccess;
  if (comm_ == nullptr) return state;
  const ncclResult_t asked = ncclCommGetAsyncError(comm_, &state);
  if (asked != ncclSuccess) return asked;
  return state == ncclInProgress ? ncclSuccess : state;
}

void Handle::abort() noexcept {
  if (comm_ != nullptr) ncclCommAbort(std::exchange(comm_, nullptr));
}

}  // namespace t3d::nccl
