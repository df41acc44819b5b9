// The one way in which the cpu back end goes parallel: fn over blocks of rows, by Kokkos where it
// has a parallel host space (or one thread is wanted), else by OpenMP. Never nested.
#pragma once
#include <algorithm>
#include <memory>
#include <new>
#include <type_traits>

#include "core/types.hpp"

namespace t3d::cpu {

/// Calls run(context, block) for every block in [0, blocks) on up to `threads` threads.
void run_blocks(int threads, index_t blocks, void (*run)(void*, index_t), void* context);

/// Calls fn(first, last) for consecutive ranges of at most `grain` rows that cover [0, rows).
template <class Fn>
void parallel_rows(int threads, index_t rows, index_t grain, Fn&& fn) {
  if (rows <= 0) return;
  grain = std::max<index_t>(grain, 1);
  if (rows <= grain) return fn(index_t{0}, rows);
  struct Context {
    std::remove_reference_t<Fn>* fn;
    index_t rows, grain;
  } context{std::addressof(fn), rows, grain};
  const auto run = [](void* opaque, index_t block) {
    const auto& c = *static_cast<Context*>(opaque);
    (*c.fn)(block * c.grain, std::min(c.rows, (block + 1) * c.grain));
  };
  run_blocks(threads, (rows + grain - 1) / grain, run, &context);
}

/// At least `count` floats of this thread's scratch memory, 64-byte aligned; the next call with the
/// same Tag may move them. Uninitialised.
template <class Tag>
[[nodiscard]] float* scratch(index_t count) {
  struct Free {
    void operator()(float* data) const { ::operator delete (data, std::align_val_t{64}); }
  };
  thread_local std::unique_ptr<float, Free> buffer;
  thread_local index_t size = 0;
  if (count > size) {
    buffer.reset();
    const auto bytes = static_cast<std::size_t>(count) * sizeof(float);
    buffer.reset(static_cast<float*>(::operator new (bytes, std::align_val_t{64})));
    size = count;
  }
  return buffer.get();
}

}  // namespace t3d::cpu
