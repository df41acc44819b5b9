# File operations of a save go wrong, one by one, in six ways: every fourth, from another one in each run
# (checkpoint_faults_all.sh: all of them). Afterwards the newest checkpoint that
# loads must be whole, saving must have told the truth, and the next save must work.
. "$T3D_SOURCE/tests/support/checkpoint_tool.sh"
stride=${stride:-4} first=${first:-$((RANDOM % stride + 1))}
echo "operations $first, $((first + stride)), ..."
"$tool" save "$here/base" 1 3 2 || exit 1

# run AT MODE: a save of step 2 beside step 1, with a fault
run() {
  rm -rf "$work" && cp -r "$here/base" "$work"
  IO_FAULT_PREFIX=$work IO_FAULT_AT=$1 IO_FAULT_MODE=$2 IO_FAULT_COUNT=$here/count \
    LD_PRELOAD=$shim "$tool" save "$work" 2 5 2 2> "$error"
}

fail() { echo "FAILED: operation $at, $mode: $*"; cat "$error"; ls -R "$work"; exit 1; }

at=0 mode=none work=$here/none error=$here/none.error
run 0 none || fail "a save without fault"
count=$(cat "$here/count")
[ "$count" -gt 20 ] || fail "only $count operations: is the shim in use?"
echo "$count operations"

sweep() { # MODE
  mode=$1 work=$here/$1 error=$here/$1.error
  refused=0 saved=0 killed=0
  for at in $(seq "$first" "$stride" "$count"); do
    run "$at" "$mode" 2> /dev/null
    status=$?
    step=$("$tool" load "$work" 9 3 2>> "$error") || fail "wrong numbers or no checkpoint"
    case $status in
      0) saved=$((saved + 1)); [ "$step" = 2 ] || fail "said it was saved, but $step is loaded" ;;
      74) refused=$((refused + 1))
        [ "$step" = 1 ] || fail "said it failed, but $step is loaded"
        ! ls "$work" | grep -q 'step-00000002\|lock' || fail "left something behind" ;;
      137) killed=$((killed + 1)); [ "$step" = 1 ] || [ "$step" = 2 ] || fail "$step is loaded" ;;
      *) fail "status $status" ;;
    esac
    next_save_works save
  done
  echo "$mode: $saved saved, $refused refused, $killed killed"
}

sweeps=()
for mode in fail full short kill_before kill_half kill_after; do
  sweep "$mode" &
  sweeps+=($!)
done
for sweep in "${sweeps[@]}"; do wait "$sweep" || exit 1; done
