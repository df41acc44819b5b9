// Attention as graphs of cuDNN's operations.
#pragma once
#include "ops/cuda/cudnn_graph.hpp"

namespace t3d::cuda {

/// The names of the tensors in memory, and the graph.
struct CudnnForward {
  CudnnGraph graph;
  CudnnGraph::Id q = 0, k = 0, v = 0, out = 0, statistics = 0;
};
struct CudnnBackward {
  CudnnGraph graph;
  CudnnGraph::Id q = 0, k = 0, v = 0, out = 0, statistics = 0, dout = 0, dq = 0, dk = 0, dv = 0;
  CudnnGraph::Id sums = 0;  // memory for [sequences, heads, length] fp32
};

/// Leading dimensions of the matrices that hold the heads.
struct CudnnRows {
  index_t qkv = 0, out = 0, dout = 0, dqkv = 0;  // dout, dqkv: backward only
};

/// out, and statistics = log of the sum of exponentials [sequences, heads, length] fp32.
[[nodiscard]] CudnnForward cudnn_forward_graph(const CudnnFunctions& functions,
                                               const CudnnAttentionShape& shape,
                                               const CudnnRows& rows, cudnnDataType_t type);
[[nodiscard]] CudnnBackward cudnn_backward_graph(const CudnnFunctions& functions,
                                                 const CudnnAttentionShape& shape,
                                                 const CudnnRows& rows, cudnnDataType_t type);

}  // namespace t3d::cuda
