// cuDNN recognises attention by the shape of the graph, so operations, number formats and extents
// of the tensors in between are those that its engines know: scores and what comes of them in fp32,
// operands of matmuls in the 16-bit format, keys as a transposed view.
//
// Gradient of the queries: the engines that add into an fp32 buffer add in any order. The graph
// whose last product is the gradient itself makes them keep dS in the workspace (2 bytes per query
// and key) and multiply afterwards: two runs give the same bits.
#include "ops/cuda/attention_cudnn_graphs.hpp"

#include <cmath>
#include <limits>
#include <utility>

namespace t3d::cuda {
namespace {

using Id = CudnnGraph::Id;

/// A graph with the pieces that both directions have.
class Writer {
 public:
  Writer(const CudnnFunctions& functions, const CudnnAttentionShape& shape, cudnnDataType_t type)
      : graph_(functions), shape_(shape), type_(type) {
    scale_ = graph_.number(1.0F / std::sqrt(static_cast<float>(shape.head_size)));
  }
  [[nodiscard]] CudnnGraph& graph() { return graph_; }
  [[nodiscard]] CudnnGraph take() { return std::move(graph_); }
  [[nodiscard]] Id heads(index_t count, index_t ld) {
    return graph_.memory(shape_.heads_in_rows(count, ld), type_);
  }
  [[nodiscard]] Id transposed_heads(index_t count, index_t ld) {
    return graph_.memory(transposed(shape_.heads_in_rows(count, ld)), type_);
  }
  [[nodiscard]] Id statistics() { return graph_.memory(shape_.statistics(), CUDNN_DATA_FLOAT); }
  [[nodiscard]] Id scores(cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return graph_.between(shape_.scores(), type);
  }
  [[nodiscard]] Id row_numbers() { return graph_.between(shape_.statistics()); }

  [[nodiscard]] Id pointwise(cudnnPointwiseMode_t mode, Id x, Id y) {
    const Id result = scores();
    graph_.pointwise(mode, {x, y}, result);
    return result;
  }
  [[nodiscard]] Id scaled(Id x) { return pointwise(CUDNN_POINTWISE_MUL, x, scale_); }
  [[nodiscard]] Id exp(Id x) {
    const Id result = scores();
    graph_.pointwise(CUDNN_POINTWISE_EXP, {x}, result);
    return result;
  }
  [[nodiscard]] Id products(Id rows, Id columns) {
    const Id result = scores();
    graph_.matmul(rows, columns, result);
    return result;
  }
  /// x where the key is not after the query, else minus infinity.
  [[nodiscard]] Id masked(Id x);
  /// x in the 16-bit format, keys as rows.
  [[nodiscard]] Id transposed_scores(Id x) {
    const Id result = graph_.between(transposed(shape_.scores()), type_);
    graph_.reshape(x, result);
    return result;
  }

 private:
  CudnnGraph graph_;
  const CudnnAttentionShape& shape_;
  cudnnDataType_t type_;
  Id scale_ = 0;
};

Id Writer::masked(Id x) {
  if (!shape_.causal) return x;
  constexpr index_t kQueries = 2, kKeys = 3;
  constexpr int kFirstWithInfinity = cudnn_version(9, 10);
  const float nothing = version_of(graph_.functions()) < kFirstWithInfinity
                            ? std::numeric_limits<float>::lowest()
                            : -std::numeric_limits<float>::infinity();
  const Id query = scores(CUDNN_DATA_INT32), key = scores(CUDNN_DATA_INT32);
  graph_.index_along(kQueries, x, query);
  graph_.index_along(kKeys, x, key);
  const Id seen = scores(CUDNN_DATA_BOOLEAN);
  graph_.pointwise(CUDNN_POINTWISE_CMP_GE, {query, key}, seen, CUDNN_DATA_BOOLEAN);
  const Id result = scores();
  graph_.pointwise(CUDNN_POINTWISE_BINARY_SELECT, {x, graph_.number(nothing), seen}, result);
  return result;
}

}  // namespace

CudnnForward cudnn_forward_graph(const CudnnFunctions& functions, const CudnnAttentionShape& shape,
                                 const CudnnRows& rows, cudnnDataType_t type) {
  Writer w(functions, shape, type);
  const Id q = w.heads(shape.heads, rows.qkv), k = w.transposed_heads(shape.kv_heads, rows.qkv),
           v = w.heads(shape.kv_heads, rows.qkv), out = w.heads(shape.heads, rows.out),
           statistics = w.statistics();
  CudnnGraph& graph = w.graph();
  const Id score = w.masked(w.scaled(w.products(q, k)));

  const Id maximum = w.row_numbers(), sum = w.row_numbers(), log = w.row_numbers();
  graph.reduce(CUDNN_REDUCE_TENSOR_MAX, score, maximum);
  const Id weight = w.exp(w.pointwise(CUDNN_POINTWISE_SUB, score, maximum));
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, weight, sum);
  graph.pointwise(CUDNN_POINTWISE_LOG, {sum}, log);
  graph.pointwise(CUDNN_POINTWISE_ADD, {maximum, log}, statistics);

  const Id probability = w.scores(type);
  graph.pointwise(CUDNN_POINTWISE_DIV, {weight, sum}, probability);
  graph.matmul(probability, v, out);
  return {w.take(), q, k, v, out, statistics};
}

namespace {

/// d (= a gradient of keys or values) = transposed^T rows, summed over the query heads that share
/// a head.
void gradient_of_keys(CudnnGraph& graph, const CudnnAttentionShape& shape, cudnnDataType_t type,
                      Id transposed, Id rows, Id d) {
  if (shape.heads == shape.kv_heads) return graph.matmul(transposed, rows, d);
  const Id all =
      graph.between(packed({shape.sequences, shape.heads, shape.length, shape.head_size}), type);
  graph.matmul(transposed, rows, all);
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, all, d);
}

}  // namespace

CudnnBackward cudnn_backward_graph(const CudnnFunctions& functions,
                                   const CudnnAttentionShape& shape, const CudnnRows& rows,
                                   cudnnDataType_t type) {
  Writer w(functions, shape, type);
  const Id q = w.heads(shape.heads, rows.qkv), k = w.transposed_heads(shape.kv_heads, rows.qkv),
           v = w.transposed_heads(shape.kv_heads, rows.qkv), out = w.heads(shape.heads, rows.out),
           statistics = w.statistics(), dout = w.heads(shape.heads, rows.dout),
           dq = w.heads(shape.heads, rows.dqkv), dk = w.heads(shape.kv_heads, rows.dqkv),
           dv = w.heads(shape.kv_heads, rows.dqkv), sums = w.statistics();
  CudnnGraph& graph = w.graph();

  const Id product = graph.between(shape.heads_in_rows(shape.heads, shape.heads * shape.head_size));
  graph.pointwise(CUDNN_POINTWISE_MUL, {dout, out}, product);
  const Id row_sum = w.row_numbers();
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, product, row_sum);
  graph.pointwise(CUDNN_POINTWISE_MUL, {row_sum, graph.number(1)}, sums);

  const Id score = w.scaled(w.products(q, k));
  const Id weight = w.exp(w.masked(w.pointwise(CUDNN_POINTWISE_SUB, score, statistics)));
  gradient_of_keys(graph, shape, type, w.transposed_scores(weight), dout, dv);

  const Id dweight = w.pointwise(CUDNN_POINTWISE_SUB, w.products(dout, v), sums);
  const Id dscore = w.scaled(w.pointwise(CUDNN_POINTWISE_MUL, dweight, weight));
  gradient_of_keys(graph, shape, type, w.transposed_scores(dscore), q, dk);

  const Id keys = graph.between(shape.heads_in_rows(shape.kv_heads, rows.qkv));
  graph.reshape(k, keys);
  graph.matmul(dscore, keys, dq);
  return {w.take(), q, k, v, out, statistics, dout, dq, dk, dv, sums};
}

}  // namespace t3d::cuda
