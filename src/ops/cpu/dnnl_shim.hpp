// What differs between oneDNN 2.x and 3.x, in one place.
#pragma once
#include <oneapi/dnnl/dnnl_version.h>

#include <dnnl.hpp>

namespace t3d::cpu {

/// C = A B (+ bias where it is not null), as `attr` says.
[[nodiscard]] inline dnnl::matmul::primitive_desc make_matmul(
    const dnnl::engine& engine, const dnnl::memory::desc& a, const dnnl::memory::desc& b,
    const dnnl::memory::desc* bias, const dnnl::memory::desc& c, const dnnl::primitive_attr& attr) {
#if DNNL_VERSION_MAJOR >= 3
  if (bias != nullptr) return {engine, a, b, *bias, c, attr};
  return {engine, a, b, c, attr};
#else
  if (bias != nullptr) return {dnnl::matmul::desc(a, b, *bias, c), attr, engine};
  return {dnnl::matmul::desc(a, b, c), attr, engine};
#endif
}

}  // namespace t3d::cpu
