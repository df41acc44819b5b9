#include <algorithm>

#include "core/error.hpp"
#include "io/weights/safetensors.hpp"

namespace t3d {
namespace {

template <class Visit>
void visit_number(DType dtype, Visit&& visit) {
  switch (dtype) {
    case DType::f64: return visit(double{});
    case DType::f32: return visit(float{});
    case DType::bf16: return visit(bf16{});
    case DType::f16: return visit(f16{});
    case DType::i32: break;
  }
  throw_error(ExitCode::internal, "{} is no number format of weights", name_of(dtype));
}

}  // namespace

// Files may begin a tensor at any byte, and buffers are filled from them: nothing is assumed of the
// addresses but what memory of the type itself has.
void convert_numbers(DType from, const void* in, DType to, void* out, index_t count) {
  visit_number(from, [&]<class From>(From) {
    visit_number(to, [&]<class To>(To) {
      const auto* source = static_cast<const From*>(in);
      auto* target = static_cast<To*>(out);
      if constexpr (std::is_same_v<From, To>)
        std::copy_n(source, count, target);
      else if constexpr (std::is_same_v<From, double> || std::is_same_v<To, double>)
        std::transform(source, source + count, target,
                       [](From x) { return static_cast<To>(static_cast<double>(x)); });
      else
        std::transform(source, source + count, target,
                       [](From x) { return static_cast<To>(static_cast<float>(x)); });
    });
  });
}

}  // namespace t3d
