// Our attention kernels as engines: tensor cores where they can, plain arithmetic for the rest.
#include "ops/cuda/attention_problem.cuh"
#include "ops/cuda/engines.hpp"

namespace t3d::cuda {
namespace {

bool nothing_to_do(const AttentionArgs& args) {
  return args.sequences == 0 || args.length == 0 || args.heads == 0;
}

class SimtAttention final : public AttentionEngine {
 public:
  explicit SimtAttention(Device& device) : device_(device) {}
  [[nodiscard]] std::string_view name() const override { return "simt"; }
  [[nodiscard]] bool usable(const AttentionArgs& args) const override {
    return args.head_size <= kMaxSimtHead;
  }
  void forward(Queue& queue, const AttentionArgs& args, TensorView out, TensorView lse) override {
    if (!nothing_to_do(args)) simt_forward(queue, args, out, lse);
  }
  void backward(Queue& queue, const AttentionArgs& args, ConstTensorView out, ConstTensorView lse,
                ConstTensorView dout, TensorView dqkv) override {
    if (!nothing_to_do(args)) simt_backward(queue, device_, args, out, lse, dout, dqkv);
  }

 private:
  Device& device_;
};

class MmaAttention final : public AttentionEngine {
 public:
  explicit MmaAttention(Device& device) : device_(device) {}
  [[nodiscard]] std::string_view name() const override { return "mma"; }
  [[nodiscard]] bool usable(const AttentionArgs& args) const override {
    return is_half(args.qkv.dtype) && args.head_size <= kMaxMmaHead && args.head_size % 8 == 0 &&
           aligned_16(args.qkv);
  }
  void forward(Queue& queue, const AttentionArgs& args, TensorView out, TensorView lse) override {
    if (!nothing_to_do(args)) mma_forward(queue, args, out, lse);
  }
  void backward(Queue& queue, const AttentionArgs& args, ConstTensorView out, ConstTensorView lse,
                ConstTensorView dout, TensorView dqkv) override {
    if (nothing_to_do(args)) return;
    if (aligned_16(dout))
      mma_backward(queue, device_, args, out, lse, dout, dqkv);
    else
      simt_backward(queue, device_, args, out, lse, dout, dqkv);
  }

 private:
  Device& device_;
};

}  // namespace

std::vector<std::unique_ptr<AttentionEngine>> make_native_attention_engines(Device& device) {
  std::vector<std::unique_ptr<AttentionEngine>> engines;
  engines.push_back(std::make_unique<MmaAttention>(device));
  engines.push_back(std::make_unique<SimtAttention>(device));
  return engines;
}

}  // namespace t3d::cuda
