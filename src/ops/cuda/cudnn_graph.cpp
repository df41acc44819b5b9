#include "ops/cuda/cudnn_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.hpp"

namespace t3d::cuda {

CudnnDescriptor::CudnnDescriptor(const CudnnFunctions& functions, cudnnBackendDescriptorType_t type)
    : functions_(functions), type_(type) {
  check_cudnn(functions_, functions_.create_descriptor(type, &descriptor_),
              fmt::format("making descriptor {}", static_cast<int>(type)));
}

CudnnDescriptor::~CudnnDescriptor() {
  if (descriptor_ != nullptr) functions_.destroy_descriptor(descriptor_);
}

CudnnDescriptor::CudnnDescriptor(CudnnDescriptor&& other) noexcept
    : functions_(other.functions_),
      type_(other.type_),
      descriptor_(std::exchange(other.descriptor_, nullptr)) {}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                          index_t count, const void* values) {
  check_cudnn(functions_, functions_.set_attribute(descriptor_, name, type, count, values),
              fmt::format("attribute {}", static_cast<int>(name)));
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
  set(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
}
void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnPointwiseMode_t value) {
  set(name, CUDNN_TYPE_POINTWISE_MODE, 1, &value);
}
void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnReduceTensorOp_t value) {
  set(name, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &value);
}
void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendHeurMode_t value) {
  set(name, CUDNN_TYPE_HEUR_MODE, 1, &value);
}
void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnHandle_t value) {
  set(name, CUDNN_TYPE_HANDLE, 1, &value);
}
void CudnnDescriptor::set(cudnnBackendAttributeName_t name, index_t value) {
  set(name, CUDNN_TYPE_INT64, 1, &value);
}
void CudnnDescriptor::set(cudnnBackendAttributeName_t name, bool value) {
  set(name, CUDNN_TYPE_BOOLEAN, 1, &value);
}
void CudnnDescriptor::set(cudnnBackendAttributeName_t name, const CudnnExtents& values) {
  set(name, CUDNN_TYPE_INT64, static_cast<index_t>(values.size()), values.data());
}
void CudnnDescriptor::set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.descriptor_);
}
void CudnnDescriptor::set(cudnnBackendAttributeName_t name,
                          const std::list<CudnnDescriptor>& values) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const CudnnDescriptor& value : values) raw.push_back(value.descriptor_);
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<index_t>(raw.size()), raw.data());
}

void CudnnDescriptor::finalize() {
  check_cudnn(functions_, functions_.finalize(descriptor_),
              fmt::format("finalizing descriptor {}", static_cast<int>(type_)));
}

index_t CudnnDescriptor::get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                             index_t room, void* values) const {
  index_t count = 0;
  check_cudnn(functions_, functions_.get_attribute(descriptor_, name, type, room, &count, values),
              fmt::format("reading attribute {}", static_cast<int>(name)));
  return count;
}

index_t CudnnDescriptor::integer(cudnnBackendAttributeName_t name) const {
  index_t value = 0;
  get(name, CUDNN_TYPE_INT64, 1, &value);
  return value;
}

index_t CudnnDescriptor::count(cudnnBackendAttributeName_t name,
                               cudnnBackendAttributeType_t type) const {
  return get(name, type, 0, nullptr);
}

CudnnGraph::Id CudnnGraph::tensor(const CudnnLayout& layout, cudnnDataType_t type, Place place) {
  constexpr index_t kAlignment = 16;
  const Id id = static_cast<Id>(tensors_.size()) + 1;
  CudnnDescriptor& x = tensors_.emplace_back(functions_, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  x.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  x.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type);
  x.set(CUDNN_ATTR_TENSOR_DIMENSIONS, layout.dims);
  x.set(CUDNN_ATTR_TENSOR_STRIDES, layout.strides);
  x.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment);
  x.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, place == Place::between);
  x.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, place == Place::number);
  x.finalize();
  return id;
}

CudnnGraph::Id CudnnGraph::memory(const CudnnLayout& layout, cudnnDataType_t type) {
  return tensor(layout, type, Place::memory);
}

CudnnGraph::Id CudnnGraph::between(const CudnnLayout& layout, cudnnDataType_t type) {
  return tensor(layout, type, Place::between);
}

CudnnGraph::Id CudnnGraph::number(float value) {
  const Id id = tensor(packed({1, 1, 1, 1}), CUDNN_DATA_FLOAT, Place::number);
  numbers_.push_back({id, value});
  return id;
}

const CudnnDescriptor& CudnnGraph::at(Id id) const {
  return tensors_.at(static_cast<std::size_t>(id - 1));
}

CudnnDescriptor& CudnnGraph::add(cudnnBackendDescriptorType_t type) {
  return operations_.emplace_back(functions_, type);
}

void CudnnGraph::matmul(Id a, Id b, Id c) {
  CudnnDescriptor& kind = kinds_.emplace_back(functions_, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  kind.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
  kind.finalize();
  CudnnDescriptor& operation = add(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, at(a));
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, at(b));
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, at(c));
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, kind);
  operation.finalize();
}

void CudnnGraph::pointwise(CudnnDescriptor&& kind, std::initializer_list<Id> inputs, Id y) {
  constexpr std::array kPorts = {CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                                 CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                                 CUDNN_ATTR_OPERATION_POINTWISE_TDESC};
  kind.finalize();
  kinds_.push_back(std::move(kind));
  CudnnDescriptor& operation = add(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kinds_.back());
  std::size_t port = 0;
  for (const Id input : inputs) operation.set(kPorts.at(port++), at(input));
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, at(y));
  operation.finalize();
}

void CudnnGraph::pointwise(cudnnPointwiseMode_t mode, std::initializer_list<Id> inputs, Id y,
                           cudnnDataType_t arithmetic) {
  CudnnDescriptor kind(functions_, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  kind.set(CUDNN_ATTR_POINTWISE_MODE, mode);
  kind.set(CUDNN_ATTR_POINTWISE_MATH_PREC, arithmetic);
  pointwise(std::move(kind), inputs, y);
}

void CudnnGraph::index_along(index_t axis, Id x, Id y) {
  CudnnDescriptor kind(functions_, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  kind.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_GEN_INDEX);
  kind.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  kind.set(CUDNN_ATTR_POINTWISE_AXIS, axis);
  pointwise(std::move(kind), {x}, y);
}

void CudnnGraph::reduce(cudnnReduceTensorOp_t operator_, Id x, Id y) {
  CudnnDescriptor& kind = kinds_.emplace_back(functions_, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  kind.set(CUDNN_ATTR_REDUCTION_OPERATOR, operator_);
  kind.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  kind.finalize();
  CudnnDescriptor& operation = add(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, at(x));
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, at(y));
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, kind);
  operation.finalize();
}

void CudnnGraph::reshape(Id x, Id y) {
  CudnnDescriptor& operation = add(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, at(x));
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, at(y));
  operation.finalize();
}

CudnnDescriptor CudnnGraph::finish(cudnnHandle_t handle) {
  CudnnDescriptor graph(functions_, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
  graph.finalize();
  return graph;
}

}  // namespace t3d::cuda
