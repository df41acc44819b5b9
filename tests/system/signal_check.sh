# A preloaded library that handles SIGPROF is named before training starts; without one nothing is said.
# Alone and under mpirun; training goes on either way.
source "$T3D_SOURCE/tests/support/job.sh"
library=$(dirname "$T3D_BIN")/tests/libt3d_profiler.so
make_text 20000
make_input
short=(--set run.steps=2 --set checkpoint.restart=never)

for ranks in 1 2; do
  run "$ranks" input.toml "${short[@]}"
  expect_status 0
  grep -q "signal" error.log && fail "a warning of signals without a handler"

  export LD_PRELOAD=$library
  run "$ranks" input.toml "${short[@]}"
  unset LD_PRELOAD
  expect_status 0
  expect_text "warning: $ranks of $ranks ranks: signal 27 .*libt3d_profiler.so.*docs/03-running.md"
  (($(grep -c "signal 27" error.log) == 1)) || fail "the warning does not stand once"
done
