// How fast memory is read: sums of `bytes` bytes of fp32 on `threads` threads, as long as it takes
// to read them once. What writing a token cannot be faster than, with the bytes of the weights.
//
//   read_rate BYTES THREADS TURNS      prints the seconds of each turn
#include <omp.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {
constexpr long kLanes = 64, kBlock = 1 << 16;
}

int main(int argc, char** argv) {
  if (argc != 4) return 64;
  const long count = std::atol(argv[1]) / 4;
  const int threads = std::atoi(argv[2]);
  std::vector<float> memory(static_cast<std::size_t>(count), 1.0F);
  for (int turn = 0; turn < std::atoi(argv[3]); ++turn) {
    const auto begin = std::chrono::steady_clock::now();
    float sum = 0;
#pragma omp parallel for reduction(+ : sum) num_threads(threads)
    for (long block = 0; block < count / kBlock; ++block) {
      float lanes[kLanes] = {};
      const float* at = memory.data() + block * kBlock;
      for (long i = 0; i < kBlock; i += kLanes)
        for (long lane = 0; lane < kLanes; ++lane) lanes[lane] += at[i + lane];
      for (const float lane : lanes) sum += lane;
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    if (sum < 0) return 1;  // the sum is used
    std::printf("%.6f\n", seconds.count());
  }
}
