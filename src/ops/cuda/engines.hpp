// Engines: the ways to do a matmul or an attention on this GPU. `native` ones are our kernels,
// `library` ones cuBLASLt and cuDNN. When a (verb, shape, number formats) is met for the first time
// outside of a recording, the engines that can do it are checked against the first native one and
// timed; the fastest that agrees is used from then on. Inside a recording nothing can be timed: the
// first engine that can do it is used, until the shape is met outside. Choices may be kept in a
// file keyed by device and library versions (engine_choice.hpp).
//
// Engines that round more coarsely on purpose (tf32, fp8) exist only where the options ask for
// them, and then go before the exact ones: which arithmetic is used never depends on timing.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "device/device.hpp"
#include "ops/cuda/engine_choice.hpp"
#include "ops/cuda/engine_trial.hpp"
#include "ops/engine_options.hpp"
#include "ops/ops.hpp"

namespace t3d::cuda {

/// What is rounded before it is multiplied, from fine to coarse.
enum class OperandRounding { none, tf32, fp8 };

/// One way to multiply. `usable` must not launch anything.
class GemmEngine {
 public:
  virtual ~GemmEngine() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual OperandRounding rounding() const { return OperandRounding::none; }
  [[nodiscard]] virtual bool usable(const GemmArgs&) const = 0;
  virtual void run(Queue&, const GemmArgs&) = 0;
};

class AttentionEngine {
 public:
  virtual ~AttentionEngine() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual bool usable(const AttentionArgs&) const = 0;
  virtual void forward(Queue&, const AttentionArgs&, TensorView out, TensorView lse) = 0;
  virtual void backward(Queue&, const AttentionArgs&, ConstTensorView out, ConstTensorView lse,
                        ConstTensorView dout, TensorView dqkv) = 0;
};

using GemmEngines = std::vector<std::unique_ptr<GemmEngine>>;
using AttentionEngines = std::vector<std::unique_ptr<AttentionEngine>>;

/// gemm_native.cpp: mma.sync (bf16, fp16, tf32) and SIMT (fp32) kernels. Any shape.
[[nodiscard]] GemmEngines make_native_gemm_engines(Device& device, const EngineOptions& options);
/// gemm_library.cpp: cuBLASLt; empty where it was not built (gemm_no_library.cpp).
[[nodiscard]] GemmEngines make_library_gemm_engines(Device& device, const EngineOptions& options);
[[nodiscard]] std::string gemm_library_version();
/// attention_*.cu: flash attention. Any shape.
[[nodiscard]] AttentionEngines make_native_attention_engines(Device& device);
/// attention_cudnn.cpp: cuDNN's; empty where it was not built or does not load
/// (attention_no_cudnn.cpp).
[[nodiscard]] AttentionEngines make_library_attention_engines(Device& device);
[[nodiscard]] std::string attention_library_version();

/// All engines of one device, and which of them does what. For one thread.
class Engines {
 public:
  struct Lists {
    GemmEngines native_gemm, gemm_library;
    AttentionEngines native_attention, attention_library;
    std::vector<std::string> notes;  // libraries that do not start
  };
  /// Every engine that there is. Throws Error where the options ask for a library that is not.
  Engines(Device& device, EngineOptions options);
  /// These engines (tests).
  Engines(Device& device, EngineOptions options, Lists lists);

  void gemm(Queue& queue, const GemmArgs& args);
  void attention_forward(Queue& queue, const AttentionArgs& args, TensorView out, TensorView lse);
  void attention_backward(Queue& queue, const AttentionArgs& args, ConstTensorView out,
                          ConstTensorView lse, ConstTensorView dout, TensorView dqkv);

  /// What the user should know: engines that were dropped, and why.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  /// Every choice with the microseconds of each engine that was tried.
  [[nodiscard]] std::string table() const { return choices_.table(); }
  /// Writes the choices for later runs. One rank per file.
  void save_cache(const std::string& path) const { choices_.save(path); }

 private:
  [[nodiscard]] std::size_t choose(Queue& queue, EngineTrial& trial);
  void attention(Queue& queue, const AttentionArgs& args, std::string_view verb,
                 const std::vector<TensorView>& outputs,
                 const std::function<void(AttentionEngine&, const std::vector<TensorView>&)>& call);

  Device& device_;
  EngineOptions options_;
  Lists lists_;
  EngineChoices choices_;
  std::unordered_map<std::string, GemmEngine*> gemms_;  // by key, what choices_ says
  std::unordered_map<std::string, AttentionEngine*> attentions_;
  std::vector<std::string> notes_;
};

}  // namespace t3d::cuda
