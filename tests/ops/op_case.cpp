#include "ops/op_case.hpp"

#include <cmath>
#include <cstring>

namespace t3d::ops_test {
namespace {

constexpr std::byte kGap{0x5a};

template <class Fn>
auto visit(DType type, Fn&& fn) {
  switch (type) {
    case DType::f64: return fn(double{});
    case DType::f32: return fn(float{});
    case DType::bf16: return fn(bf16{});
    case DType::f16: return fn(f16{});
    default: return fn(std::int32_t{});
  }
}

double number(const BufferSpec& spec, const RandomKey& key, index_t index) {
  switch (spec.content) {
    case Content::normal: return spec.spread * random_normal(key, index);
    case Content::positive:
      return 0.5 + spec.spread * static_cast<double>(random_uniform(key, index));
    case Content::integer: {
      const auto span = static_cast<std::uint32_t>(2 * spec.spread + 1);
      return static_cast<double>(random_bits(key, index) % span) - spec.spread;
    }
    case Content::garbage: return 12345;
  }
  return 0;
}

}  // namespace

double rounding_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return 0x1p-52;
    case DType::bf16: return 0x1p-7;
    case DType::f16: return 0x1p-10;
    default: return kEps32;
  }
}

Buffer::Buffer(const BufferSpec& spec, index_t pad, std::uint64_t stream, index_t unit)
    : spec_(spec),
      ld_(spec.may_pad ? (spec.cols + pad + unit - 1) / unit * unit : spec.cols),
      bytes_(static_cast<std::size_t>(spec.rows * ld_ * size_of(spec.dtype)), kGap) {
  const RandomKey key{20260101, stream};
  for (index_t r = 0; r < spec.rows; ++r)
    for (index_t c = 0; c < spec.cols; ++c) set(r, c, number(spec, key, r * spec.cols + c));
}

TensorView Buffer::view() {
  return {shown_ != nullptr ? shown_ : bytes_.data(), spec_.dtype, spec_.rows, spec_.cols, ld_};
}

double Buffer::at(index_t row, index_t col) const {
  return visit(spec_.dtype, [&]<class T>(T value) {
    std::memcpy(&value, bytes_.data() + (row * ld_ + col) * size_of(spec_.dtype), sizeof value);
    return static_cast<double>(value);
  });
}

void Buffer::set(index_t row, index_t col, double number) {
  visit(spec_.dtype, [&]<class T>(T) {
    const T value = static_cast<T>(number);
    std::memcpy(bytes_.data() + (row * ld_ + col) * size_of(spec_.dtype), &value, sizeof value);
  });
}

bool Buffer::gaps_intact() const {
  const index_t size = size_of(spec_.dtype);
  for (index_t r = 0; r < spec_.rows; ++r)
    for (index_t b = spec_.cols * size; b < ld_ * size; ++b)
      if (bytes_[static_cast<std::size_t>(r * ld_ * size + b)] != kGap) return false;
  return true;
}

std::vector<Buffer> OpCase::make_buffers(index_t pad, index_t unit) const {
  std::vector<Buffer> out;
  for (std::size_t i = 0; i < buffers.size(); ++i) out.emplace_back(buffers[i], pad, i, unit);
  if (prepare) prepare(out);
  return out;
}

}  // namespace t3d::ops_test
