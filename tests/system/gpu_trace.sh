# debug.trace of GPU ranks: their compute streams beside their hosts (tests/support/trace_check.py), two GPU ranks, and one beside
# a CPU rank; a window in the middle of a run and at its start. The GPUs are emulated: they compute when somebody waits, or where
# they are timed, so that times between two events mean something and where in the step they are does not.
. "$T3D_SOURCE/tests/support/job.sh"
export T3D_EMULATED_TIME=1
T3D_BIN=$T3D_EMULATED
make_text 4000
make_input
common=(input.toml --set run.steps=8 --set batch.sequences=4 --set batch.micro=2 --set balance.every=1)
check() { # RUN FIRST LAST RANKS GPUS
  python3 "$T3D_SOURCE/tests/support/trace_check.py" "$1" "$2" "$3" "$4" --gpus "$5" > check.txt 2>&1 || { cat check.txt >&2; fail "the trace of $*"; }
  cat check.txt
}
run 2 "${common[@]}" -d plain --set mesh.device=cuda --set "mesh.cuboid=[1,2,1]"
expect_status 0
run 2 "${common[@]}" -d two --set mesh.device=cuda --set "mesh.cuboid=[1,2,1]" --set "debug.trace=[3,5]" --set checkpoint.every_steps=4
expect_status 0
expect_text "trace of steps 3 to 5: two/trace.json"
grep -q "bytes sent differ" out.log && fail "the trace changes the books"
check two 3 5 2 0,1
same_losses plain two 0
for name in matmul attention head optimizer waiting; do
  grep -q "\"name\":\"$name\",\"cat\":\"stream\"" two/trace.json || fail "no $name on the stream"
done

run 2 "${common[@]}" -d mixed --set mesh.device=mixed --set mesh.replicas=2 --set "mesh.cuboid=[1,1,1]" --set "debug.trace=[1,2]"
expect_status 0
expect_text "1 rank on GPUs, 1 on CPUs"
check mixed 1 2 2 0
