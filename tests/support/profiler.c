/* Preloaded by tests/system/signal_check.sh: what gprof and other sampling profilers do to a program
 * that they are loaded into. T3D_PROFILER_FLAGS: sigaction's flags (0). */
#include <signal.h>
#include <stdlib.h>

static void sample(int number) { (void)number; }

__attribute__((constructor)) static void install(void) {
  const char* flags = getenv("T3D_PROFILER_FLAGS");
  struct sigaction action = {0};
  action.sa_handler = sample;
  action.sa_flags = flags ? atoi(flags) : 0;
  sigaction(SIGPROF, &action, NULL);
}
