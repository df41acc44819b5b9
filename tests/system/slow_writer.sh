# A checkpoint that takes longer than the watchdog allows does not end a healthy run; one that takes
# longer than its own limit does.
# rotates
. "$T3D_SOURCE/tests/support/job.sh"
shim=$(dirname "$T3D_BIN")/tests/libt3d_io_fault.so
[[ -e $shim ]] || fail "no $shim"
make_text 20000
make_input

# slow_save DIR SECONDS args...: the first operation on a file of the checkpoint takes so long
slow_save() {
  local dir=$1
  export LD_PRELOAD=$shim IO_FAULT_PREFIX=$PWD/$dir/ckpt/step- IO_FAULT_AT=1 IO_FAULT_MODE=delay IO_FAULT_SECONDS=$2
  shift 2
  run 2 input.toml -d "$dir" --set run.steps=2 --set "mesh.cuboid=[1,2,1]" "$@"
  unset LD_PRELOAD
}

slow_save patient 7 --set debug.watchdog_seconds=3
expect_status 0
expect_text "checkpoint .*step-00000002 in [7-9]"

slow_save impatient 7 --set debug.watchdog_seconds=3 --set debug.io_seconds=2
expect_status 76
expect_text "on axis checkpoint"
