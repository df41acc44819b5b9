# Every file operation of the processes that write a checkpoint beside the ranks goes wrong once, in six ways: of
# one that writes a node file, and of the one that publishes. Afterwards the newest checkpoint that loads must be
# whole, the ranks must have told the truth, and the next save must work. Every third operation, with two node files,
# from a place that changes from day to day and is printed; writer_faults_all.sh does all.
# rotates
. "$T3D_SOURCE/tests/support/checkpoint_tool.sh"
: "${stride:=3}" "${first:=$((1 + $(date +%j | sed 's/^0*//') % stride))}" "${files:=2}"
echo "every ${stride}. operation from number $first on"
"$tool" background "$here/base" 1 3 2 || exit 1

# run PROCESS AT MODE: a save of step 2 beside step 1, with a fault
run() {
  rm -rf "$work" && cp -r "$here/base" "$work"
  IO_FAULT_PROCESS=$1 IO_FAULT_PREFIX=$work IO_FAULT_AT=$2 IO_FAULT_MODE=$3 IO_FAULT_COUNT=$here/count.$1.$3 \
    LD_PRELOAD=$shim "$tool" background "$work" 2 5 "$ranks" 2> "$error"
}

fail() { echo "FAILED: $process, operation $at, $mode: $*"; cat "$error"; ls -R "$work"; exit 1; }

sweep() { # PROCESS MODE COUNT
  process=$1 mode=$2 work=$here/$1.$2 error=$here/$1.$2.error
  refused=0 saved=0
  for at in $(seq "$first" "$stride" "$3"); do
    run "$process" "$at" "$mode" 2> /dev/null
    status=$?
    step=$("$tool" load "$work" 9 3 2>> "$error") || fail "wrong numbers or no checkpoint"
    case $status in
      0) saved=$((saved + 1)); [ "$step" = 2 ] || fail "said it was saved, but $step is loaded" ;;
      74) refused=$((refused + 1))
        # Killed between the new name and its last word, the process has published nevertheless.
        [ "$step" = 1 ] || { [ "$process" = publish ] && [[ $mode == kill_* ]]; } ||
          fail "said it failed, but $step is loaded"
        ! ls "$work" | grep -q 'partial\|lock' || fail "left something behind" ;;
      *) fail "status $status" ;;
    esac
    next_save_works background
  done
  echo "$process, $mode: $saved saved, $refused refused"
}

for ranks in $files; do for process in file publish; do
  at=0 mode=none work=$here/none error=$here/none.error
  run $process 0 none || fail "a save without fault"
  count=$(cat "$here/count.$process.none")
  echo "$ranks files, $process: $count operations"
  [ "$count" -gt 10 ] || fail "only $count operations: is the shim in use?"
  sweeps=()
  for mode in fail full short kill_before kill_half kill_after; do
    sweep $process "$mode" "$count" &
    sweeps+=($!)
  done
  for sweep in "${sweeps[@]}"; do wait "$sweep" || exit 1; done
done; done
