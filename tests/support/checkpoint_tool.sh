# Sourced by tests of checkpoints alone, without a training: the program $tool (checkpoint_tool.cpp), and the library $shim
# (io_fault.c) under which its file operations go wrong. $here is the test's folder.
set -u
tools=$(dirname "$T3D_BIN")/tests
tool=$tools/t3d_checkpoint_tool
shim=$tools/libt3d_io_fault.so
[ -x "$tool" ] && [ -e "$shim" ] || { echo "no $tool"; exit 1; }
export ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0
here=$PWD

# next_save_works VERB: after whatever happened in $work; says nothing but errors
next_save_works() {
  "$tool" "$1" "$work" 3 4 2 2>> "$error" || fail "the next save"
  [ "$("$tool" load "$work" 9 3 2>> "$error")" = 3 ] || fail "the next save is not loaded"
  ! ls "$work" | grep -q 'partial\|lock$' || fail "the next save has not tidied up"
}
