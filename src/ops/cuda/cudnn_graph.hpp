// cuDNN's operation graphs in C++: descriptors that free themselves, a graph that is written down
// operation by operation, and the plan that the library makes of it.
#pragma once
#include <cuda_runtime_api.h>

#include <initializer_list>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ops/cuda/cudnn_layout.hpp"
#include "ops/cuda/cudnn_library.hpp"

namespace t3d::cuda {

/// One descriptor of the backend API: attributes are set, then it is finalized and read-only.
class CudnnDescriptor {
 public:
  CudnnDescriptor(const CudnnFunctions& functions, cudnnBackendDescriptorType_t type);
  ~CudnnDescriptor();
  CudnnDescriptor(CudnnDescriptor&& other) noexcept;
  CudnnDescriptor& operator=(CudnnDescriptor&&) = delete;
  CudnnDescriptor(const CudnnDescriptor&) = delete;
  CudnnDescriptor& operator=(const CudnnDescriptor&) = delete;

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, index_t count,
           const void* values);
  /// One value of the type that cuDNN has for it.
  void set(cudnnBackendAttributeName_t name, cudnnDataType_t value);
  void set(cudnnBackendAttributeName_t name, cudnnPointwiseMode_t value);
  void set(cudnnBackendAttributeName_t name, cudnnReduceTensorOp_t value);
  void set(cudnnBackendAttributeName_t name, cudnnBackendHeurMode_t value);
  void set(cudnnBackendAttributeName_t name, cudnnHandle_t value);
  void set(cudnnBackendAttributeName_t name, index_t value);
  void set(cudnnBackendAttributeName_t name, bool value);
  void set(cudnnBackendAttributeName_t name, const CudnnExtents& values);
  void set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value);
  void set(cudnnBackendAttributeName_t name, const std::list<CudnnDescriptor>& values);
  void finalize();

  [[nodiscard]] index_t integer(cudnnBackendAttributeName_t name) const;
  /// How many values the attribute has.
  [[nodiscard]] index_t count(cudnnBackendAttributeName_t name,
                              cudnnBackendAttributeType_t type) const;
  /// Reads into `values` (room for `room` of them) and says how many there are.
  index_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, index_t room,
              void* values) const;
  [[nodiscard]] cudnnBackendDescriptor_t raw() const { return descriptor_; }

 private:
  const CudnnFunctions& functions_;
  cudnnBackendDescriptorType_t type_;
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

/// Tensors and the operations between them, in the order of their dependence.
class CudnnGraph {
 public:
  /// A tensor; at the same time cuDNN's name for it, counted from 1.
  using Id = index_t;

  explicit CudnnGraph(const CudnnFunctions& functions) : functions_(functions) {}

  /// An operand or a result in device memory, 16-byte aligned.
  Id memory(const CudnnLayout& layout, cudnnDataType_t type);
  /// A tensor that exists in the kernel only.
  Id between(const CudnnLayout& layout, cudnnDataType_t type = CUDNN_DATA_FLOAT);
  /// A factor that the host hands over with every call.
  Id number(float value);

  /// c = a b
  void matmul(Id a, Id b, Id c);
  /// y = mode(inputs...); shorter extents of 1 are repeated.
  void pointwise(cudnnPointwiseMode_t mode, std::initializer_list<Id> inputs, Id y,
                 cudnnDataType_t arithmetic = CUDNN_DATA_FLOAT);
  /// y[...] = the index along `axis`; `x` gives the extents.
  void index_along(index_t axis, Id x, Id y);
  /// y = sum or maximum of x over the extents that are 1 in y.
  void reduce(cudnnReduceTensorOp_t operation, Id x, Id y);
  /// y = x with other extents or strides.
  void reshape(Id x, Id y);

  /// The graph for the library. Once, at the end.
  [[nodiscard]] CudnnDescriptor finish(cudnnHandle_t handle);

  struct Number {
    Id id = 0;
    float value = 0;
  };
  [[nodiscard]] const std::list<Number>& numbers() const { return numbers_; }
  [[nodiscard]] const CudnnFunctions& functions() const { return functions_; }

 private:
  enum class Place { memory, between, number };
  Id tensor(const CudnnLayout& layout, cudnnDataType_t type, Place place);
  [[nodiscard]] const CudnnDescriptor& at(Id id) const;
  CudnnDescriptor& add(cudnnBackendDescriptorType_t type);
  void pointwise(CudnnDescriptor&& kind, std::initializer_list<Id> inputs, Id y);

  const CudnnFunctions& functions_;
  std::vector<CudnnDescriptor> tensors_;
  std::list<CudnnDescriptor> kinds_, operations_;
  std::list<Number> numbers_;
};

/// What one call hands to a plan.
struct CudnnOperand {
  CudnnGraph::Id id = 0;
  void* data = nullptr;
};

/// A graph with the engine that cuDNN's heuristics put first among those that can do it and give
/// the same bits in every run.
class CudnnPlan {
 public:
  /// Takes seconds. Throws Error(unavailable) with the reasons where no engine can do it within
  /// `workspace_limit` bytes.
  CudnnPlan(cudnnHandle_t handle, CudnnGraph graph, index_t workspace_limit);

  [[nodiscard]] index_t workspace_bytes() const { return workspace_bytes_; }
  void run(cudnnHandle_t handle, cudaStream_t stream, const std::vector<CudnnOperand>& operands,
           void* workspace);

 private:
  void choose(cudnnHandle_t handle, cudnnBackendHeurMode_t mode, index_t workspace_limit,
              std::string& reasons);

  CudnnGraph graph_;
  CudnnDescriptor operations_;
  std::optional<CudnnDescriptor> plan_;
  index_t workspace_bytes_ = 0;
};

}  // namespace t3d::cuda
