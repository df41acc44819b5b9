#include "core/error.hpp"
#include "ops/registry.hpp"

namespace t3d {
namespace {

[[noreturn]] void not_built() {
  throw_error(ExitCode::unavailable,
              "this program was built without CUDA; load a CUDA module and build the preset cuda");
}

}  // namespace

bool cuda_built() { return false; }
std::vector<Gpu> visible_gpus() { not_built(); }
Backend make_cuda_backend(int, const EngineOptions&) { not_built(); }

}  // namespace t3d
