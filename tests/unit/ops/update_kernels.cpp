// The kernels of the update have the same bits on every instruction set that this processor runs.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "ops/cpu/kernels.hpp"
#include "support/catch.hpp"

namespace t3d {
namespace {

constexpr index_t kCount = 4099;  // no multiple of any vector

// Numbers of many sizes, and among them those that are special.
std::vector<float> numbers(unsigned seed, bool special = true) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<int> exponent(-30, 10);
  std::vector<float> all(kCount);
  for (float& x : all) x = std::ldexp(normal(random), exponent(random));
  using Limits = std::numeric_limits<float>;
  const float odd[] = {0.0F,
                       -0.0F,
                       Limits::denorm_min(),
                       -Limits::min() / 3,
                       Limits::max(),
                       -Limits::max(),
                       Limits::infinity(),
                       -Limits::infinity(),
                       Limits::quiet_NaN()};
  for (std::size_t i = 0; special && i < std::size(odd); ++i) all[97 * i + seed % 7] = odd[i];
  return all;
}

std::vector<bf16> narrowed(const std::vector<float>& from) {
  std::vector<bf16> to(from.size());
  cpu::kernels().copy_f32_bf16(from.data(), to.data(), kCount);
  return to;
}

// NaN has many forms, and which one a sum of two keeps is the processor's choice.
bool same(const std::vector<float>& a, const std::vector<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(&a[i], &b[i], sizeof a[i]) != 0 && !(std::isnan(a[i]) && std::isnan(b[i])))
      return false;
  return a.size() == b.size();
}

// What one kernel leaves behind, by instruction set; all must be alike.
template <class Run>
void check_alike(const Run& run) {
  const std::vector<const cpu::Kernels*> all = cpu::all_kernels();
  const std::vector<float> expected = run(*all.front()->update);
  for (const cpu::Kernels* one : all) {
    INFO(one->isa);
    CHECK(same(run(*one->update), expected));
  }
}

std::vector<float> joined(std::initializer_list<std::vector<float>> parts) {
  std::vector<float> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::vector<float> words(const std::vector<double>& numbers) {
  std::vector<float> all(2 * numbers.size());
  std::memcpy(all.data(), numbers.data(), numbers.size() * sizeof(double));
  return all;
}

template <class T>
const cpu::UpdateKernelsFor<T>& of(const cpu::UpdateKernels& kernels) {
  if constexpr (std::is_same_v<T, float>)
    return kernels.f32;
  else
    return kernels.b16;
}

template <class T>
void check_optimizers(const std::vector<T>& grad) {
  const cpu::AdamWStep adam{0.9F, 0.95F, 1e-8F, 0.37F, 3e-4F, 1.7F, 3e-5F};
  auto second = numbers(3);
  for (float& v : second) v = std::abs(v);
  check_alike([&](const cpu::UpdateKernels& kernels) {
    auto w = numbers(1), m = numbers(2), v = second;
    of<T>(kernels).adamw(w.data(), m.data(), v.data(), grad.data(), adam, kCount);
    return joined({w, m, v});
  });
  check_alike([&](const cpu::UpdateKernels& kernels) {
    auto m = numbers(2), v = second;
    std::vector<float> direction(kCount);
    const auto w = numbers(1);
    of<T>(kernels).adam_direction(w.data(), m.data(), v.data(), grad.data(), adam, direction.data(),
                                  kCount);
    return joined({direction, m, v});
  });
  for (const bool nesterov : {false, true})
    check_alike([&](const cpu::UpdateKernels& kernels) {
      auto w = numbers(1), v = numbers(2);
      of<T>(kernels).sgd(w.data(), v.data(), grad.data(), {0.1F, 0.9F, 0.01F, 0.37F, nesterov},
                         kCount);
      return joined({w, v});
    });
}

template <class T>
void check_sums(const std::vector<T>& x) {
  for (const index_t n : {index_t{0}, index_t{1}, index_t{15}, index_t{16}, index_t{33}, kCount})
    check_alike([&](const cpu::UpdateKernels& kernels) {
      return words({of<T>(kernels).sum_squares(x.data(), n)});
    });
  for (const index_t rows : {1, 2, 3, 5, 9}) {
    const index_t columns = kCount / rows;
    check_alike([&](const cpu::UpdateKernels& kernels) {
      std::vector<double> packed(static_cast<std::size_t>(rows * (rows + 1) / 2), 0.25);
      std::vector<float> workspace(static_cast<std::size_t>(kernels.gram_workspace(rows)) + 16);
      auto* const at = reinterpret_cast<float*>(
          (reinterpret_cast<std::uintptr_t>(workspace.data()) + 63) / 64 * 64);
      of<T>(kernels).gram(x.data(), columns, rows, columns, packed.data(), at);
      return words(packed);
    });
    check_alike([&](const cpu::UpdateKernels& kernels) {
      std::vector<const T*> pointers;
      std::vector<double> factors;
      for (index_t row = 0; row < rows; ++row) {
        pointers.push_back(x.data() + row * columns);
        factors.push_back(std::exp(0.1 * static_cast<double>(row)) / 3);
      }
      std::vector<float> out(static_cast<std::size_t>(columns));
      of<T>(kernels).combine_to_float(pointers.data(), factors.data(), rows, 0, out.data(),
                                      columns);
      return out;
    });
  }
}

}  // namespace

TEST_CASE("optimizers have the same bits on every instruction set") {
  const auto grad = numbers(4);
  check_optimizers(grad);
  check_optimizers(narrowed(grad));
  check_alike([](const cpu::UpdateKernels& kernels) {
    auto y = numbers(6);
    const auto x = numbers(5);
    kernels.axpby(0.3F, x.data(), -1.7F, y.data(), kCount);
    return y;
  });
}

TEST_CASE("sums of the update have the same bits on every instruction set") {
  const auto x = numbers(7, false);
  check_sums(x);
  check_sums(narrowed(x));
}

}  // namespace t3d
