// Lazy streams, events and graphs, memory that ends at a guard page.
#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <vector>

#include "support/catch.hpp"

namespace {

__global__ void add_one(int* x, int n) {
  const int at = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (at < n) x[at] += 1;
}

void queue_add(cudaStream_t stream, int* x, int n) {
  cudaLaunchConfig_t config;
  config.gridDim = static_cast<unsigned>(n + 31) / 32;
  config.blockDim = 32;
  config.stream = stream;
  REQUIRE(cudaLaunchKernelEx(&config, add_one, x, n) == cudaSuccess);
}

struct Streams {
  Streams() {
    cudaStreamCreate(&one);
    cudaStreamCreate(&two);
    cudaEventCreate(&event);
    cudaMalloc(&x, 64 * sizeof(int));
    cudaMallocHost(&host, 64 * sizeof(int));
    cudaMemset(x, 0, 64 * sizeof(int));
  }
  ~Streams() {
    cudaStreamDestroy(one);
    cudaStreamDestroy(two);
    cudaEventDestroy(event);
    cudaFree(x);
    cudaFreeHost(host);
  }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
  cudaStream_t one = nullptr, two = nullptr;
  cudaEvent_t event = nullptr;
  int *x = nullptr, *host = nullptr;
};

bool faults(int bytes) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    char* data = nullptr;
    cudaMalloc(&data, 100);
    data[bytes - 1] = 1;
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

}  // namespace

TEST_CASE("nothing runs before somebody waits") {
  Streams s;
  queue_add(s.one, s.x, 64);
  cudaMemcpyAsync(s.host, s.x, 4, cudaMemcpyDeviceToHost, s.one);
  CHECK(s.host[0] == -1);  // poison
  REQUIRE(cudaStreamSynchronize(s.one) == cudaSuccess);
  CHECK(s.host[0] == 1);
}

TEST_CASE("only events order streams") {
  Streams s;
  queue_add(s.one, s.x, 64);
  cudaMemcpyAsync(s.host, s.x, 4, cudaMemcpyDeviceToHost, s.two);
  cudaStreamSynchronize(s.two);
  CHECK(s.host[0] == 0);  // the other stream had no reason to run
  cudaEventRecord(s.event, s.one);
  cudaStreamWaitEvent(s.two, s.event);
  cudaMemcpyAsync(s.host, s.x, 4, cudaMemcpyDeviceToHost, s.two);
  cudaStreamSynchronize(s.two);
  CHECK(s.host[0] == 1);
}

TEST_CASE("pageable memory is read at the call, page-locked memory later") {
  Streams s;
  int pageable = 7;
  s.host[0] = 8;
  cudaMemcpyAsync(s.x, &pageable, 4, cudaMemcpyHostToDevice, s.one);
  cudaMemcpyAsync(s.x + 1, s.host, 4, cudaMemcpyHostToDevice, s.one);
  pageable = s.host[0] = 0;
  cudaStreamSynchronize(s.one);
  CHECK(s.x[0] == 7);
  CHECK(s.x[1] == 0);
}

TEST_CASE("a query says not yet before it says yes") {
  Streams s;
  queue_add(s.one, s.x, 64);
  cudaEventRecord(s.event, s.one);
  CHECK(cudaEventQuery(s.event) == cudaErrorNotReady);
  int turns = 0;
  while (cudaEventQuery(s.event) == cudaErrorNotReady) REQUIRE(++turns < 100);
  CHECK(s.x[0] == 1);
}

TEST_CASE("graphs: recorded once, launched twice, updated in place, branches joined") {
  Streams s;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  const auto record = [&](int n, bool join) {
    cudaStreamBeginCapture(s.one, cudaStreamCaptureModeRelaxed);
    cudaEventRecord(s.event, s.one);
    cudaStreamWaitEvent(s.two, s.event);
    queue_add(s.two, s.x, n);
    if (join) {
      cudaEventRecord(s.event, s.two);
      cudaStreamWaitEvent(s.one, s.event);
    }
    return cudaStreamEndCapture(s.one, &graph);
  };
  CHECK(record(64, false) == cudaErrorStreamCaptureUnjoined);
  REQUIRE(record(64, true) == cudaSuccess);
  REQUIRE(cudaGraphInstantiate(&executable, graph) == cudaSuccess);
  cudaGraphDestroy(graph);
  cudaGraphLaunch(executable, s.one);
  cudaGraphLaunch(executable, s.one);
  REQUIRE(record(1, true) == cudaSuccess);
  cudaGraphExecUpdateResultInfo info{};
  REQUIRE(cudaGraphExecUpdate(executable, graph, &info) == cudaSuccess);
  cudaGraphDestroy(graph);
  cudaGraphLaunch(executable, s.one);
  cudaStreamSynchronize(s.one);
  CHECK(s.x[0] == 3);
  CHECK(s.x[1] == 2);
  cudaGraphExecDestroy(executable);

  cudaStreamBeginCapture(s.one, cudaStreamCaptureModeRelaxed);
  CHECK(cudaStreamSynchronize(s.one) == cudaErrorStreamCaptureUnsupported);
  CHECK(cudaStreamEndCapture(s.one, &graph) == cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();
}

TEST_CASE("an allocation ends at a guard page and starts as poison") {
  CHECK_FALSE(faults(100));
  CHECK(faults(101));
  unsigned char* data = nullptr;
  cudaMalloc(&data, 3);
  CHECK(data[2] == 0xff);
  cudaFree(data);
}
