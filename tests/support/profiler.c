/* Preloaded by tests/system/signal_check.sh: what gprof and other sampling profilers do to a
 * program that they are loaded into. T3D_PROFILER_STACK=1: on an alternate stack of the first
 * thread. T3D_PROFILER_MICROSECONDS: a sample after so much time of the processor, else never. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

static char stack[65536];

static void sample(int number) { /* with a frame as large as an unwinder's */
  volatile char frame[2048];
  memset((void*)frame, number, sizeof(frame));
}

__attribute__((constructor)) static void install(void) {
  struct sigaction action = {0};
  action.sa_handler = sample;
  action.sa_flags = SA_RESTART;
  if (getenv("T3D_PROFILER_STACK")) {
    stack_t own = {0};
    own.ss_sp = stack;
    own.ss_size = sizeof(stack);
    sigaltstack(&own, NULL);
    action.sa_flags |= SA_ONSTACK;
  }
  sigaction(SIGPROF, &action, NULL);
  const char* text = getenv("T3D_PROFILER_MICROSECONDS");
  const int every = text ? atoi(text) : 0;
  struct itimerval timer = {{0, every}, {0, every}};
  setitimer(ITIMER_PROF, &timer, NULL);
}
