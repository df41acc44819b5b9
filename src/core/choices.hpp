// Every choice of the program that has a word in the input (core/words.hpp). A "rule" may be
// automatic; what is decided from it has a type without that.
#pragma once
#include "core/words.hpp"

namespace t3d {

/// What a norm subtracts and divides by.
enum class NormKind { layer, rms };
template <>
struct Words<NormKind> {
  static constexpr std::array<std::string_view, 2> all{"layernorm", "rmsnorm"};
};

/// Non-linearity of the feed-forward part; swiglu takes gate | up.
enum class Activation { gelu_tanh, swiglu };
template <>
struct Words<Activation> {
  static constexpr std::array<std::string_view, 2> all{"gelu", "swiglu"};
};

/// How positions enter the model.
enum class Position { learned, rope };
template <>
struct Words<Position> {
  static constexpr std::array<std::string_view, 2> all{"learned", "rope"};
};

/// How the rotation frequencies of a longer context come from those of a shorter one
/// (core/rope.hpp).
enum class RopeScaling { none, linear, llama3, yarn };
template <>
struct Words<RopeScaling> {
  static constexpr std::array<std::string_view, 4> all{"none", "linear", "llama3", "yarn"};
};

/// Biases of the linears of attention: as model.bias says, none, of queries, keys and values, or
/// of the projection too.
enum class AttentionBias { as_bias, none, qkv, all };
template <>
struct Words<AttentionBias> {
  static constexpr std::array<std::string_view, 4> all{"auto", "none", "qkv", "all"};
};

/// Which gathered operands stay until the backward pass.
enum class KeepRule { automatic, all, none };
template <>
struct Words<KeepRule> {
  static constexpr std::array<std::string_view, 3> all{"auto", "all", "none"};
};

/// What axis k cuts inside attention.
enum class AttentionRule { automatic, sequences, heads };
template <>
struct Words<AttentionRule> {
  static constexpr std::array<std::string_view, 3> all{"auto", "sequences", "heads"};
};

/// The same, decided: whole sequences (layout A) or heads (layout B).
enum class AttentionCut { sequences, heads };
template <>
struct Words<AttentionCut> {
  static constexpr std::array<std::string_view, 2> all{"sequences", "heads"};
};

/// Whether checkpoints are written beside the steps: by themselves where the state is large enough
/// to be worth a process.
enum class AsyncRule { automatic, on, off };
template <>
struct Words<AsyncRule> {
  static constexpr std::array<std::string_view, 3> all{"auto", "on", "off"};
};

/// Where ranks compute.
enum class DeviceRule { automatic, cpu, cuda, mixed };
template <>
struct Words<DeviceRule> {
  static constexpr std::array<std::string_view, 4> all{"auto", "cpu", "cuda", "mixed"};
};

/// How GPU ranks send messages.
enum class TransportRule { automatic, nccl, staged };
template <>
struct Words<TransportRule> {
  static constexpr std::array<std::string_view, 3> all{"auto", "nccl", "staged"};
};

/// The same, decided; host where every rank computes on a CPU. nccl_and_staged: NCCL in groups
/// whose ranks all have a GPU of their own, staged in all others.
enum class TransportKind { host, nccl, staged, nccl_and_staged };
template <>
struct Words<TransportKind> {
  static constexpr std::array<std::string_view, 4> all{"host", "nccl", "staged", "nccl+staged"};
};

/// What the backward pass computes again.
enum class Recompute { none, block };
template <>
struct Words<Recompute> {
  static constexpr std::array<std::string_view, 2> all{"none", "block"};
};

/// Type of activations and matrix products.
enum class ComputeType { fp64, fp32, tf32, bf16, fp16 };
template <>
struct Words<ComputeType> {
  static constexpr std::array<std::string_view, 5> all{"fp64", "fp32", "tf32", "bf16", "fp16"};
};

/// Type of the operands of matrix products.
enum class MatmulType { compute, fp8 };
template <>
struct Words<MatmulType> {
  static constexpr std::array<std::string_view, 2> all{"compute", "fp8"};
};

/// Type of partial sums of activations in messages.
enum class ReduceType { automatic, fp32, compute };
template <>
struct Words<ReduceType> {
  static constexpr std::array<std::string_view, 3> all{"auto", "fp32", "compute"};
};

/// Operators of CPU ranks.
enum class BackendRule { automatic, cpu, reference };
template <>
struct Words<BackendRule> {
  static constexpr std::array<std::string_view, 3> all{"auto", "cpu", "reference"};
};

/// Who multiplies or attends on a GPU.
enum class EngineRule { automatic, native, library };
template <>
struct Words<EngineRule> {
  static constexpr std::array<std::string_view, 3> all{"auto", "native", "library"};
};

/// The update rule.
enum class OptimizerKind { adamw, sgd, lamb, muon };
template <>
struct Words<OptimizerKind> {
  static constexpr std::array<std::string_view, 4> all{"adamw", "sgd", "lamb", "muon"};
};

/// Length of an orthogonalised step.
enum class MuonScale { rms, shape };
template <>
struct Words<MuonScale> {
  static constexpr std::array<std::string_view, 2> all{"rms", "shape"};
};

/// Course of the learning rate after warm-up.
enum class ScheduleKind { constant, linear, cosine, wsd };
template <>
struct Words<ScheduleKind> {
  static constexpr std::array<std::string_view, 4> all{"constant", "linear", "cosine", "wsd"};
};

/// What the replicas' gradients become.
enum class AggregateMethod { mean, sum, adasum };
template <>
struct Words<AggregateMethod> {
  static constexpr std::array<std::string_view, 3> all{"mean", "sum", "adasum"};
};

/// Where Adasum stands in the step.
enum class AggregatePlacement { automatic, pre, post, gain };
template <>
struct Words<AggregatePlacement> {
  static constexpr std::array<std::string_view, 4> all{"auto", "pre", "post", "gain"};
};

/// How Adasum is computed.
enum class AggregateAlgorithm { automatic, gram, flat };
template <>
struct Words<AggregateAlgorithm> {
  static constexpr std::array<std::string_view, 3> all{"auto", "gram", "flat"};
};

/// What Adasum treats as one vector.
enum class GroupBy { tensor, block, model };
template <>
struct Words<GroupBy> {
  static constexpr std::array<std::string_view, 3> all{"tensor", "block", "model"};
};

/// How a gradient of unusual weight enters Adasum.
enum class LeafRule { noise, linear };
template <>
struct Words<LeafRule> {
  static constexpr std::array<std::string_view, 2> all{"noise", "linear"};
};

/// Type of Adasum's messages.
enum class WireType { fp32, bf16 };
template <>
struct Words<WireType> {
  static constexpr std::array<std::string_view, 2> all{"fp32", "bf16"};
};

/// Format of the files of a corpus (data/token_source.hpp).
enum class TokenFormat { automatic, hdf5, llmc, megatron, u16, u32, bytes };
template <>
struct Words<TokenFormat> {
  static constexpr std::array<std::string_view, 7> all{"auto", "hdf5", "llmc", "megatron",
                                                       "u16",  "u32",  "bytes"};
};

}  // namespace t3d
