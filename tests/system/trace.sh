# debug.trace: one trace of all ranks that is true (tests/support/trace_check.py), for a window in the middle of a run, at its
# start, after a restart; answers to wrong windows.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 4000
make_input
sed -i 's/^steps = 20/steps = 8/' input.toml
check() { # RUN FIRST LAST RANKS [FILE]
  python3 "$T3D_SOURCE/tests/support/trace_check.py" "$@" > check.txt 2>&1 || { cat check.txt >&2; fail "the trace of $*"; }
  cat check.txt
}
run 4 input.toml -d run --set mesh.replicas=2 --set "mesh.cuboid=[1,2,1]" --set "debug.trace=[3,5]" --set checkpoint.every_steps=4
expect_status 0
expect_text "trace of steps 3 to 5: run/trace.json"
grep -q "bytes sent differ" out.log && fail "the trace changes the books"
check run 3 5 4

# From the first step; a window of which a part was done before; one that is over. Nothing is overwritten.
run 2 input.toml -d other --set "debug.trace=[1,1]" --set checkpoint.every_steps=4 --set run.steps=5
expect_status 0
check other 1 1 2
cp other/trace.json first.json
run 2 input.toml -d other --set "debug.trace=[4,7]"
expect_status 0
check other 6 7 2 trace-2.json
cmp first.json other/trace.json || fail "the first trace was changed"
run 1 input.toml -d other --set "debug.trace=[2,3]" --set run.steps=9
expect_status 0
expect_text "trace: steps 2 to 3 were done before this start"
[[ ! -e other/trace-3.json ]] || fail "a trace of nothing"

# A run that ends in the window: what is whole is there, and no more is claimed.
run 2 input.toml -d paused --set "debug.trace=[3,7]" --set run.pause_at=4
expect_status 75
expect_text "trace of steps 3 to 4: paused/trace.json"
check paused 3 4 2
run 2 input.toml -d before --set "debug.trace=[5,7]" --set run.pause_at=4
expect_status 75
expect_text "trace: the run ended before step 5 was done"
[[ ! -e before/trace.json ]] || fail "a trace of nothing"

# A file that cannot be written: a warning with the reason, nothing left, and the training goes on.
(
  ulimit -S -f 24 # KiB
  run 1 input.toml -d small --set "debug.trace=[2,7]"
  expect_status 74 # no checkpoint fits either
  expect_text "^warning: trace of steps 2 to 7: not written: cannot write small/trace.json: File too large"
) || exit 1
[[ $(losses small | wc -l) == 8 ]] || fail "not all steps were done"
! compgen -G "small/trace*" || fail "a part of a trace was left"

for window in "[5,3]:the first step 5 comes after the last, 3" "[3]:has 1 numbers, not 2" "[7,99]:step 99 comes after the end of the run, 8" \
  "[0,3]:debug.trace"; do
  run 1 input.toml -d none --set "debug.trace=${window%%:*}"
  expect_status 78
  expect_text "${window#*:}"
done
[[ ! -e none ]] || fail "a wrong window made a run folder"
