// NCCL's names in this program's words: errors, groups of calls, and the communicator handle.
#pragma once
#include <nccl.h>

#include <string_view>

#include "comm/communicator.hpp"

namespace t3d::nccl {

/// Throws Error with NCCL's last words: peer_lost where a peer or the network is the cause, else
/// internal.
void check(ncclResult_t result, std::string_view what);
[[nodiscard]] ExitCode code_of(ncclResult_t result);

[[nodiscard]] ncclDataType_t type_of(DType type);

/// Calls between construction and end() are one operation: none waits for another.
class CallGroup {
 public:
  CallGroup() { check(ncclGroupStart(), "ncclGroupStart"); }
  CallGroup(const CallGroup&) = delete;
  CallGroup& operator=(const CallGroup&) = delete;
  ~CallGroup() {
    if (open_) ncclGroupEnd();
  }
  void end() {
    open_ = false;
    check(ncclGroupEnd(), "ncclGroupEnd");
  }

 private:
  bool open_ = true;
};

/// Owns one NCCL communicator or, in a group of one rank, none.
class Handle {
 public:
  Handle() = default;
  explicit Handle(ncclComm_t comm) : comm_(comm) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle();

  [[nodiscard]] ncclComm_t get() const { return comm_; }
  /// What NCCL has noticed since the last call.
  [[nodiscard]] ncclResult_t asynchronous_error() const;
  /// Ends what still runs on the GPU, without the peers.
  void abort() noexcept;

 private:
  ncclComm_t comm_ = nullptr;
};

}  // namespace t3d::nccl
