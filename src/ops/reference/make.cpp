#include "ops/reference/reference_ops.hpp"

namespace t3d {
std::unique_ptr<Ops> make_reference_ops() { return std::make_unique<ReferenceOps>(); }
}  // namespace t3d
