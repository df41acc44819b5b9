# Every file operation of a save goes wrong once, in six ways. Afterwards the newest checkpoint that
# loads must be whole, saving must have told the truth, and the next save must work.
set -u
tools=$(dirname "$T3D_BIN")/tests
tool=$tools/t3d_checkpoint_tool
shim=$tools/libt3d_io_fault.so
[ -x "$tool" ] && [ -e "$shim" ] || { echo "no $tool"; exit 1; }
export ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0
here=$PWD
"$tool" save "$here/base" 1 3 2 || exit 1

# run AT MODE: a save of step 2 beside step 1, with a fault
run() {
  rm -rf "$here/work" && cp -r "$here/base" "$here/work"
  IO_FAULT_PREFIX=$here/work IO_FAULT_AT=$1 IO_FAULT_MODE=$2 IO_FAULT_COUNT=$here/count \
    LD_PRELOAD=$shim "$tool" save "$here/work" 2 5 2 2> "$here/error"
}

fail() { echo "FAILED: operation $at, $mode: $*"; cat "$here/error"; ls -R "$here/work"; exit 1; }

# A manifest that cannot be read when retention looks at it: that checkpoint stays.
at=0 mode=unreadable
"$tool" save "$here/kept" 1 3 2 && "$tool" save "$here/kept" 2 3 2 || fail "two saves"
IO_FAULT_READ=step-00000001/MANIFEST.json LD_PRELOAD=$shim "$tool" save "$here/kept" 3 3 2 2> "$here/error" ||
  fail "a save beside an unreadable one"
[ -e "$here/kept/step-00000001/MANIFEST.json" ] || fail "removed what it could not read"
"$tool" save "$here/kept" 4 3 2 || fail "the save after it"
[ "$(ls "$here/kept" | tr '\n' ' ')" = "step-00000003 step-00000004 " ] || fail "$(ls "$here/kept")"

# A folder that cannot be listed is not an empty one.
at=0 mode=unlisted
IO_FAULT_LIST=$here/kept LD_PRELOAD=$shim "$tool" load "$here/kept" 9 3 > "$here/answer" 2> "$here/error"
[ $? = 74 ] || fail "not exit code 74 but $(cat "$here/answer")"
grep -q "$here/kept: Input/output error" "$here/error" || fail "the path is not named"

at=0 mode=none
run 0 none || fail "a save without fault"
count=$(cat "$here/count")
[ "$count" -gt 20 ] || fail "only $count operations: is the shim in use?"
echo "$count operations"

for mode in fail full short kill_before kill_half kill_after; do
  refused=0 saved=0 killed=0
  for at in $(seq 1 "$count"); do
    run "$at" "$mode" 2> /dev/null
    status=$?
    step=$("$tool" load "$here/work" 9 3 2>> "$here/error") || fail "wrong numbers or no checkpoint"
    case $status in
      0) saved=$((saved + 1)); [ "$step" = 2 ] || fail "said it was saved, but $step is loaded" ;;
      74) refused=$((refused + 1))
        [ "$step" = 1 ] || fail "said it failed, but $step is loaded"
        ! ls "$here/work" | grep -q 'step-00000002\|lock' || fail "left something behind" ;;
      137) killed=$((killed + 1)); [ "$step" = 1 ] || [ "$step" = 2 ] || fail "$step is loaded" ;;
      *) fail "status $status" ;;
    esac
    "$tool" save "$here/work" 3 4 2 2>> "$here/error" || fail "the next save"
    [ "$("$tool" load "$here/work" 9 3 2>> "$here/error")" = 3 ] || fail "the next save is not loaded"
    ! ls "$here/work" | grep -q 'partial\|lock$' || fail "the next save has not tidied up"
  done
  echo "$mode: $saved saved, $refused refused, $killed killed"
done
