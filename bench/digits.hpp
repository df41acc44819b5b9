// A task that a processor learns within seconds: digits of 12 x 12 pixels (glyphs of 5 x 7,
// shifted, of random brightness, in noise), never the same image twice, and a network of one hidden
// layer. Every image is a function of (seed, its number), so a batch may be dealt to replicas in
// any way.
#pragma once
#include <array>
#include <span>

#include "core/random.hpp"
#include "device/device.hpp"
#include "ops/ops.hpp"

namespace t3d::bench {

/// What everything here computes with.
struct Machine {
  Device& device;
  Queue& queue;
  Ops& ops;
};

/// Images [rows, kPixels] fp32 and labels [1, rows] int32.
struct Digits {
  static constexpr index_t kSide = 12, kPixels = kSide * kSide, kClasses = 10;

  Digits(const Machine& machine, index_t rows);
  /// The digits first, first + 1, ... of a stream.
  void draw(const Machine& machine, const RandomKey& key, index_t first);

  Tensor images, labels;
};

/// 144-48-10 with ReLU; its parameters are one row in the order W1, b1, W2, b2.
class DigitsModel {
 public:
  static constexpr index_t kHidden = 48, kGroups = 4;
  static constexpr std::array<index_t, kGroups + 1> kOffsets{
      0, Digits::kPixels* kHidden, (Digits::kPixels + 1) * kHidden,
      (Digits::kPixels + 1 + Digits::kClasses) * kHidden,
      (Digits::kPixels + 1 + Digits::kClasses) * kHidden + Digits::kClasses};
  static constexpr index_t kParameters = kOffsets[kGroups];

  DigitsModel(const Machine& machine, std::uint64_t seed);
  [[nodiscard]] TensorView parameters() const { return parameters_; }
  /// Mean cross-entropy.
  [[nodiscard]] double loss(const Digits& digits);
  /// Row i of gradients [batches, kParameters] is that of the mean loss of the i-th batch; the
  /// batches follow each other in `digits`.
  void gradients(const Digits& digits, std::span<const index_t> batches, TensorView gradients);

 private:
  struct Forward {
    Tensor hidden, logits, lse, loss;
  };
  Forward forward(const Digits& digits);

  Machine machine_;
  Tensor parameters_;
};

}  // namespace t3d::bench
