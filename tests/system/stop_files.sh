# What asks a run for something besides signals: files in its folder, and its own time limit.
# rotates
. "$T3D_SOURCE/tests/support/job.sh"
make_text 20000
make_input
long=(input.toml --set run.steps=1000000 --set log.every_steps=1000000 --set "mesh.cuboid=[2,1,1]")
ended() { # DIR CODE CONTINUE REASON
  python3 - "$@" <<'PY' || fail "exit.json of $1"
import json, sys
folder, code, goes_on, reason = sys.argv[1:]
end = json.load(open(folder + "/exit.json"))
assert (end["code"], end["continue"]) == (int(code), goes_on == "yes") and reason in end["reason"], end
assert end["requeues"] is False, end
PY
}
until_true() {
  for _ in $(seq 1000); do
    "$@" && return
    sleep 0.02
  done
  fail "not within 20 s: $*"
}
steps() { (($(wc -l < "$1/log.jsonl" 2> /dev/null || echo 0) >= $2)); }
has() { grep -qs -- "$2" "$1"; }

mkdir files
touch -d yesterday files/stop_now
mpirun -n 2 --oversubscribe "$T3D_BIN" "${long[@]}" -d files > out.log 2>&1 &
job=$!
trap 'kill -KILL $job 2> /dev/null' EXIT
until_true steps files 5
[[ ! -e files/stop_now ]] || fail "a stop_now of before is still there"
touch files/checkpoint_now
until_true has files/run.log "^checkpoint files/ckpt/step-"
[[ ! -e files/checkpoint_now ]] || fail "checkpoint_now is still there"
touch files/report_now
until_true has files/run.log "asked for by report_now after step"
until_true has files/run.log "^world "
kill -0 $job || fail "the run has ended"
touch files/stop_now
wait $job
status=$?
expect_status 75
ended files 75 no "stop_now"
grep -q "differ" out.log && fail "bytes differ from the formula"

# Its own time limit, shorter than the run: stopped in time, to be continued.
start=$(date +%s%N)
run 2 "${long[@]}" -d hours --set checkpoint.every_steps=50 --set run.hours=0.0015
took=$((($(date +%s%N) - start) / 1000000))
expect_status 75
ended hours 75 yes "the time limit is near"
steps hours 5 || fail "stopped after $(wc -l < hours/log.jsonl) steps"
((took > 2000 && took < 15000)) || fail "5.4 s took $took ms"
run 2 "${long[@]}" -d hours --set run.hours=0.0005
expect_status 75
expect_text "resumed from hours/ckpt"

# Slurm's limit where scontrol does not answer: the environment of the job tells it. A script's signal that
# comes long before it, and after few steps, is said.
in_job() { # SECONDS DIR: the job's end is so far away
  SLURM_JOB_ID=7 SLURM_JOB_END_TIME=$(($(date +%s) + $1)) "$T3D_BIN" "${long[@]}" -d "$2" \
    --set "mesh.cuboid=[1,1,1]" --set run.requeue=false > out.log 2>&1 &
  job=$!
}
in_job 5 limited
wait $job
status=$?
expect_status 75
ended limited 75 yes "the time limit is near"
in_job 100 signalled
until_true steps signalled 3
kill -USR2 $job
wait $job
status=$?
expect_status 75
ended signalled 75 yes "asked to stop by a signal"
expect_text "warning: .* before the time limit, after .* s of training"

# A schedule that changes on the way is said; the same one, in parts, is not.
part=(input.toml --set "mesh.cuboid=[1,1,1]")
run 1 "${part[@]}" -d parts --set run.pause_at=5
expect_status 75
run 1 "${part[@]}" -d parts
expect_status 0
grep -q "another schedule" out.log && fail "nothing has changed"
run 1 "${part[@]}" -d tokens --set run.pause_at=5
expect_status 75
run 1 "${part[@]}" -d tokens --set run.steps=0 --set run.tokens=$((20 * 8 * 32)) --set run.pause_at=10
expect_status 75
grep -q "another schedule" out.log && fail "the same length in tokens is no other schedule"
run 1 "${part[@]}" -d parts --set run.steps=30
expect_status 0
expect_text "warning: the learning rate follows another schedule than before step 20.*run.steps: 20 -> 30"

# INT is the user's, TERM is not.
for signal in INT TERM; do
  # The shell lets what it starts in the background ignore INT.
  python3 -c 'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])' \
    "$T3D_BIN" "${long[@]}" -d $signal --set "mesh.cuboid=[1,1,1]" > out.log 2>&1 &
  job=$!
  until_true steps $signal 3
  kill -$signal $job
  wait $job
  status=$?
  expect_status 75
  grep -q "asked to stop by .*: stops after this step" out.log || fail "no answer to $signal"
  ended $signal 75 "$([[ $signal == TERM ]] && echo yes || echo no)" "asked to stop by a signal"
done
