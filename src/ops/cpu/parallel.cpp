#include "ops/cpu/parallel.hpp"

#include <Kokkos_Core.hpp>

namespace t3d::cpu {
namespace {

// Kokkos is started at first use, without arguments, and ended with the process unless somebody
// else owns it.
struct KokkosRuntime {
  KokkosRuntime() : mine(!Kokkos::is_initialized()) {
    if (mine) Kokkos::initialize();
  }
  ~KokkosRuntime() {
    if (mine && Kokkos::is_initialized()) Kokkos::finalize();
  }
  KokkosRuntime(const KokkosRuntime&) = delete;
  KokkosRuntime& operator=(const KokkosRuntime&) = delete;
  bool mine;
};

template <class Space>
void run_with_kokkos(index_t blocks, void (*run)(void*, index_t), void* context) {
  static const KokkosRuntime runtime;
  using Policy = Kokkos::RangePolicy<Space, Kokkos::IndexType<index_t>>;
  Kokkos::parallel_for("t3d", Policy(0, blocks), [=](index_t block) { run(context, block); });
}

}  // namespace

void run_blocks(int threads, index_t blocks, void (*run)(void*, index_t), void* context) {
  if (threads <= 1) return run_with_kokkos<Kokkos::Serial>(blocks, run, context);
#if defined(KOKKOS_ENABLE_OPENMP)
  run_with_kokkos<Kokkos::OpenMP>(blocks, run, context);
#else
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (index_t block = 0; block < blocks; ++block) run(context, block);
#endif
}

}  // namespace t3d::cpu
