// From a graph to something that runs: cuDNN's heuristics name engines; the first of them that is
// deterministic, can be finalized and needs little enough memory becomes the plan.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.hpp"
#include "ops/cuda/cudnn_graph.hpp"

namespace t3d::cuda {
namespace {

/// What the heuristics propose, the best first.
std::list<CudnnDescriptor> proposals_for(const CudnnDescriptor& operations,
                                         const CudnnFunctions& functions,
                                         cudnnBackendHeurMode_t mode) {
  CudnnDescriptor heuristics(functions, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, operations);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  heuristics.finalize();
  const index_t count =
      heuristics.count(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR);
  std::list<CudnnDescriptor> proposals;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (index_t i = 0; i < count; ++i)
    raw.push_back(proposals.emplace_back(functions, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).raw());
  const index_t filled = heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                        CUDNN_TYPE_BACKEND_DESCRIPTOR, count, raw.data());
  while (static_cast<index_t>(proposals.size()) > filled) proposals.pop_back();
  return proposals;
}

/// Whether the engine says of itself that two runs may differ.
bool is_nondeterministic(const CudnnDescriptor& proposal, const CudnnFunctions& functions) {
  const CudnnDescriptor engine(functions, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.raw();
  proposal.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  const index_t count = engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                   static_cast<index_t>(notes.size()), notes.data());
  const auto end = notes.begin() + std::min(count, static_cast<index_t>(notes.size()));
  return std::find(notes.begin(), end, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) != end;
}

}  // namespace

CudnnPlan::CudnnPlan(cudnnHandle_t handle, CudnnGraph graph, index_t workspace_limit)
    : graph_(std::move(graph)), operations_(graph_.finish(handle)) {
  std::string reasons;
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    choose(handle, mode, workspace_limit, reasons);
    if (plan_.has_value()) return;
  }
  throw_error(ExitCode::unavailable, "cuDNN has no engine: {}",
              reasons.empty() ? "none is proposed" : reasons);
}

void CudnnPlan::choose(cudnnHandle_t handle, cudnnBackendHeurMode_t mode, index_t workspace_limit,
                       std::string& reasons) {
  const CudnnFunctions& functions = graph_.functions();
  const auto refuse = [&](std::string_view reason) {
    reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ", reason);
  };
  std::list<CudnnDescriptor> proposals;
  try {
    proposals = proposals_for(operations_, functions, mode);
  } catch (const Error& error) {
    return refuse(error.what());
  }
  for (const CudnnDescriptor& proposal : proposals) {
    try {
      if (is_nondeterministic(proposal, functions)) {
        refuse("an engine whose runs may differ");
        continue;
      }
      CudnnDescriptor plan(functions, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, proposal);
      plan.finalize();
      const index_t bytes = plan.integer(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
      if (bytes > workspace_limit) {
        refuse(fmt::format("an engine that needs {} bytes", bytes));
        continue;
      }
      workspace_bytes_ = bytes;
      plan_.emplace(std::move(plan));
      return;
    } catch (const Error& error) {
      refuse(error.what());
    }
  }
}

void CudnnPlan::run(cudnnHandle_t handle, cudaStream_t stream,
                    const std::vector<CudnnOperand>& operands, void* workspace) {
  const CudnnFunctions& functions = graph_.functions();
  std::vector<index_t> ids;
  std::vector<void*> data;
  for (const CudnnOperand& operand : operands) {
    ids.push_back(operand.id);
    data.push_back(operand.data);
  }
  for (const CudnnGraph::Number& number : graph_.numbers()) {
    ids.push_back(number.id);
    data.push_back(const_cast<float*>(&number.value));  // read by the call itself
  }
  const auto count = static_cast<index_t>(ids.size());
  CudnnDescriptor pack(functions, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, data.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  pack.finalize();
  check_cudnn(functions, functions.set_stream(handle, stream), "choosing the stream");
  check_cudnn(functions, functions.execute(handle, plan_->raw(), pack.raw()), "attention");
}

}  // namespace t3d::cuda
