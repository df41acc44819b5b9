# lives.jsonl: a line for every start of the ranks, also of those that were killed; and what
# `transformer3d status` says of the folder at each point.
# rotates
. "$T3D_SOURCE/tests/support/job.sh"
shim=$(dirname "$T3D_BIN")/tests/libt3d_io_fault.so
[[ -e $shim ]] || fail "no $shim"
make_text 20000
make_input
long=(input.toml -d r --set run.steps=1000000 --set log.every_steps=1000000)
pair=(mpirun -n 2 --oversubscribe "$T3D_BIN" "${long[@]}" --set "mesh.cuboid=[2,1,1]")
trap 'kill -KILL ${job:-} 2> /dev/null' EXIT

last_step() { # as the last whole line of the log says
  [[ -s r/log.jsonl ]] || return 1
  head -n "$(wc -l < r/log.jsonl)" r/log.jsonl | tail -n 1 | sed 's/^{"step":\([0-9]*\),.*/\1/'
}
until_step() { # LEAST
  for _ in $(seq 1000); do
    local step
    step=$(last_step) && ((step >= $1)) && return
    kill -0 $job 2> /dev/null || fail "the job ended before step $1"
    sleep 0.02
  done
  fail "no step $1"
}
newest() { basename "$(ls -d r/ckpt/step-???????? | tail -n 1)" | sed 's/step-0*//'; }
kill_ranks() {
  local ranks
  ranks=$(cat /proc/$job/task/*/children)
  (($(wc -w <<< "$ranks") == 2)) || fail "not two ranks: $ranks"
  kill -KILL $ranks
  wait $job 2> /dev/null
}
# lives PYTHON: true of the list of lives
lives() {
  python3 - "$1" <<'PY' || fail "lives.jsonl"
import json, sys
lives = [json.loads(line) for line in open("r/lives.jsonl")]
fields = ("life job restart nodes ranks started why lineage from_step checkpoint first_step_seconds ended code reason "
          "step saved_step lost_steps").split()
for number, life in enumerate(lives, 1):
    assert list(life) == fields, life
    assert (life["life"], life["nodes"], life["restart"]) == (number, 1, 0), life
    assert life["ended"] is None or 0 <= life["ended"] - life["started"] < 60, life
    assert life["first_step_seconds"] is None or 0 < life["first_step_seconds"] < 60, life
last = lives[-1]
if not eval(sys.argv[1]):
    sys.exit(f"not {sys.argv[1]}:\n" + "\n".join(map(str, lives)))
PY
}
# state STATE PYTHON: of the status, in text and as JSON
state() {
  run 1 status r
  expect_status 0
  expect_text "^  state *$1"
  run 1 status --json r
  expect_status 0
  python3 - "$1" "$2" <<'PY' || fail "status --json"
import json, sys
s = json.load(open("screen.log"))
assert s["not_read"] == [] and s["state"] == sys.argv[1], s
if not eval(sys.argv[2]):
    sys.exit(f"not {sys.argv[2]}: {s}")
PY
}

run 1 status r
expect_status 66
mkdir r
run 1 status r input.toml
expect_status 66
expect_text "r is no run folder"
# It starts no MPI, which would wait for the other rank.
timeout 60 mpirun -n 2 --oversubscribe bash -c '((OMPI_COMM_WORLD_RANK == 1)) && exec sleep 2; exec "$0" status r' "$T3D_BIN" > out.log 2>&1
status=$?
expect_status 66

# The first life: Ctrl-C. A shell without job control lets its background jobs ignore it.
python3 -c "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])" \
  "$T3D_BIN" "${long[@]}" > out.log 2>&1 &
job=$!
until_step 3
[[ -e r/life.json && ! -e r/lives.jsonl ]] || fail "the record of a life that has not ended"
state running 's["alive"] and s["step"] > 2 and s["steps"] == 1000000 and s["lives"] == 1 and s["predicted_end"] > 1.7e9'
kill -INT $job
wait $job
status=$?
expect_status 75
[[ ! -e r/life.json ]] || fail "life.json after the end"
lives 'len(lives) == 1 and last["why"] == "new run" and last["from_step"] == 0 and last["checkpoint"] is None'
lives 'last["code"] == 75 and last["step"] == last["saved_step"] == '"$(newest)"' and last["lost_steps"] is None'
state stopped 's["exit"]["code"] == 75 and s["checkpoint"]["step"] == s["step"] and not s["alive"]'

# The second: two ranks, killed somewhere between two checkpoints. A second program touches nothing.
first=$(newest)
"${pair[@]}" --set checkpoint.every_steps=30 > out.log 2>&1 &
job=$!
until_step $((first + 45))
cp r/life.json before.json
run 1 "${long[@]}" -r never
expect_status 69
same_life() { sed 's/"saved_step":[^,]*,//' "$1"; } # the run itself keeps that up to date
[[ $(same_life before.json) == "$(same_life r/life.json)" ]] || fail "a program without the lock wrote life.json"
kill_ranks
[[ -e r/life.json && $(wc -l < r/lives.jsonl) == 1 ]] || fail "a killed life has written its end"
reached=$(last_step) saved=$(newest)
state killed 's["step"] == '"$reached"' and s["lives"] == 2 and s["life"]["code"] is None and not s["predicted_end"]'
expect_text '"reason":"ended without a word","step":'"$reached,\"saved_step\":$saved,"'

# The third goes on from the second's checkpoint, writes none itself, and is killed too.
"${pair[@]}" > out.log 2>&1 &
job=$!
for _ in $(seq 1000); do grep -q '"life":3,.*"first_step_seconds":[0-9]' r/life.json && break; sleep 0.02; done
until_step $((saved + 12))
lives 'lives[0]["lost_steps"] == 0'
lives 'last["why"] == "continued after: asked to stop by a signal" and last["from_step"] == '"$first"' and last["ranks"] == 2'
lives 'last["code"] is None and last["ended"] is None and last["reason"] == "ended without a word"'
lives 'last["step"] == '"$reached"' and last["saved_step"] == '"$saved"' and last["lost_steps"] == '$((reached - saved))
lives 'last["checkpoint"].endswith("step-%08d" % '"$first"') and last["first_step_seconds"] > 0'
kill_ranks
((saved == $(newest))) || fail "the third life has saved"
reached=$(last_step)
printf '{"life":3,"rea' >> r/lives.jsonl # half a line, as a killed writer of another version might leave
state killed 's["lives"] == 3'

# The fourth ends the run; the fifth finds nothing to do.
run 2 input.toml -d r --set "mesh.cuboid=[2,1,1]" --set run.steps=$((saved + 5))
expect_status 0
lives 'len(lives) == 4 and lives[2]["lost_steps"] == '$((reached - saved))' > 0 and lives[2]["saved_step"] == '"$saved"
lives 'last["code"] == 0 and last["reason"] == "all steps done" and last["why"] == "continued after: ended without a word"'
state done 's["left_seconds"] == 0 and s["lives"] == 4 and len(s["last_lives"]) == 3'
run 1 input.toml -d r --set run.steps=$((saved + 5))
expect_status 0
lives 'len(lives) == 5 and lives[3]["lost_steps"] == 0 and last["first_step_seconds"] is None'

# Started anew, the checkpoints before stay: nothing is lost. A disk that is full for the records costs warnings.
IO_FAULT_PREFIX=$PWD/r/li IO_FAULT_AT=1 IO_FAULT_MODE=full LD_PRELOAD=$shim run 1 input.toml -d "$PWD/r" -r never --set run.steps=3
expect_status 0
expect_text "warning: the record of this life in lives.jsonl is not kept: .*No space left"
lives 'len(lives) == 5'
run 1 input.toml -d r -r never --set run.steps=4
expect_status 0
lives 'len(lives) == 6 and lives[4]["lost_steps"] == 0 and last["why"] == "-r never after: nothing is left to do: the checkpoint is at step '$((saved + 5))' and the run ends at step '$((saved + 5))'"'
lives 'last["from_step"] == 0 and last["checkpoint"] is None and last["lineage"] == 2'
