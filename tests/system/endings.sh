# How trainings end: signals, a screen that goes away, divergence, nothing left to do. The exit code,
# and exit.json for those who only see the launcher's.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 20000
make_input
long=(input.toml --set run.steps=1000000 --set log.every_steps=1000000)

ended() { # DIR CODE REASON: what exit.json says; the step of the checkpoint in $step
  step=$(python3 - "$@" <<'PY'
import json, sys
folder, code, reason = sys.argv[1:]
end = json.load(open(folder + "/exit.json"))
if end["code"] != int(code) or reason not in end["reason"]:
    sys.exit(f"exit.json: {end}")
print(end["checkpoint"] if code == "75" and end["checkpoint"] == end["step"] else end["step"])
PY
  ) || fail "exit.json of $1"
}
start() { # DIR COMMAND...: in the background as $job, until two steps are done
  local folder=$1
  shift
  "$@" > out.log 2>&1 &
  job=$!
  for _ in $(seq 1000); do
    [[ -s $folder/log.jsonl && $(wc -l < "$folder/log.jsonl") -ge 2 ]] && return
    kill -0 $job 2> /dev/null || fail "the job ended before step 2"
    sleep 0.02
  done
  fail "no step 2"
}

# Every signal that asks to stop.
for signal in USR1 USR2 TERM HUP; do
  start "$signal" "$T3D_BIN" "${long[@]}" -d "$signal"
  [[ ! -e $signal/exit.json ]] || fail "exit.json before the end"
  kill "-$signal" $job
  wait $job
  status=$?
  expect_status 75
  ended "$signal" 75 "asked to stop"
  [[ -e $signal/ckpt/$(printf 'step-%08d' "$step")/MANIFEST.json ]] || fail "no checkpoint of step $step"
done

# Under nohup the end of the session, HUP, is no end of the training; other signals are.
start nohup nohup "$T3D_BIN" "${long[@]}" -d nohup
kill -HUP $job
lines=$(wc -l < nohup/log.jsonl)
for _ in $(seq 1000); do
  kill -0 $job 2> /dev/null || fail "HUP stopped a training under nohup"
  (($(wc -l < nohup/log.jsonl) >= lines + 3)) && break
  sleep 0.02
done
kill -TERM $job
wait $job
status=$?
expect_status 75
ended nohup 75 "asked to stop"
((step >= lines + 3)) || fail "no step after HUP"

# TERM to mpirun: the checkpoint is written, and exit.json has the code that mpirun does not.
start mpi mpirun -n 2 --oversubscribe "$T3D_BIN" "${long[@]}" -d mpi --set "mesh.cuboid=[2,1,1]"
kill -TERM $job
wait $job
status=$?
((status != 0)) || fail "mpirun says that all was well"
ended mpi 75 "asked to stop"

# Nobody reads the screen any more: the training and its files go on.
{
  timeout 60 "$T3D_BIN" input.toml -d unread
  echo $? > unread.status
} 2> out.log | head -n 1 > /dev/null
status=$(cat unread.status)
expect_status 0
[[ $(wc -l < unread/log.jsonl) == 20 && -e unread/ckpt/step-00000020/MANIFEST.json ]] || fail "the training did not go on"
grep -q "all steps done" unread/run.log || fail "run.log did not go on"
ended unread 0 "all steps done"
# The same when the screen is a full disk.
"$T3D_BIN" input.toml -d full > /dev/full 2> out.log
status=$?
expect_status 0
ended full 0 "all steps done"

# Divergence has a code of its own, on one rank and on two.
run 1 input.toml -d high --set optimizer.lr=1e30
expect_status 65
ended high 65 "the loss is"
run 2 input.toml -d high2 --set optimizer.lr=1e30 --set "mesh.cuboid=[1,2,1]"
expect_status 65
ended high2 65 "the loss is"

# Less than the checkpoint has: nothing is done.
run 1 input.toml -d unread --set run.steps=12
expect_status 0
expect_text "nothing is left to do: the checkpoint is at step 20 and the run ends at step 12"
! grep -q "steps 20 to\|all steps done" out.log || fail "a report of steps that were not done"
[[ $(ls unread/ckpt) == step-00000020 ]] || fail "a new checkpoint"
ended unread 0 "nothing is left"

# Another optimizer: what changed, and what to do.
for restart in auto unread/ckpt/step-00000020; do
  run 1 input.toml -d unread --set run.steps=30 --set optimizer.kind=sgd -r "$restart"
  expect_status 78
  expect_text "optimizer.kind was adamw and is sgd"
  expect_text "-r never"
  ended unread 78 "optimizer.kind was adamw"
done
# That this could not be written down is said, too, though there is no log yet.
mkdir unread/exit.json.rank-0
run 1 input.toml -d unread --set run.steps=30 --set optimizer.kind=sgd
expect_status 78
expect_text "warning: unread/exit.json.rank-0 is a folder"

# A checkpoint's input keeps where its values came from.
python3 - <<'PY' || fail "origins in the checkpoint"
import json
text = json.load(open("unread/ckpt/step-00000020/MANIFEST.json"))["texts"]["input"]
for line in ('hidden = 32  # input.toml:', 'dir = "unread"  # --set run.dir', 'beta2 = 0.95  # default', 'ffn = 128  # computed'):
    assert line in text, line
PY
