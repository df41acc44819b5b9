# A rank that is killed while the launcher does nothing (srun without --kill-on-bad-exit; here mpirun
# --enable-recovery): the others say so once and end within seconds, and the run continues. A run that was
# stopped for longer than the watchdog allows (scontrol suspend) goes on.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 20000
make_input
long=(input.toml --set run.steps=1000000 --set log.every_steps=1000 --set checkpoint.every_steps=20)

start() { # DIR RANKS STEP args...: in the background as $job, until the step is done; the ranks in $ranks
  local folder=$1 count=$2 step=$3
  shift 3
  mpirun --enable-recovery -n "$count" --oversubscribe "$T3D_BIN" "${long[@]}" -d "$folder" "$@" > out.log 2>&1 &
  job=$!
  trap 'kill -KILL $ranks $job 2> /dev/null' EXIT
  for _ in $(seq 1200); do
    ranks=$(pgrep -P $job)
    grep -q "\"step\":$step," "$folder/log.jsonl" 2> /dev/null && return
    kill -0 $job 2> /dev/null || fail "the job ended before step $step"
    sleep 0.02
  done
  fail "no step $step"
}
of_rank() { # NUMBER: its process
  local process
  for process in $ranks; do
    tr '\0' '\n' < "/proc/$process/environ" | grep -q "^OMPI_COMM_WORLD_RANK=$1\$" && echo "$process" && return
  done
  fail "no process of rank $1"
}
expect_ended() { # SECONDS: all ranks, but those that became zombies of mpirun
  local process state
  for _ in $(seq $((50 * $1))); do
    left=""
    for process in $ranks; do
      state=$(sed 's/.*) \(.\).*/\1/' "/proc/$process/stat" 2> /dev/null)
      [[ -z $state || $state == Z ]] || left+=" $process"
    done
    [[ -z $left ]] && return
    sleep 0.02
  done
  fail "after $1 s there are still ranks:$left"
}

for lost in 0 2; do
  start "lost$lost" 4 25 --set "mesh.cuboid=[1,2,2]"
  kill -KILL "$(of_rank $lost)"
  expect_ended 10
  grep -q "rank $lost on node .* is lost: its process has ended without a word" out.log || fail "the screen does not name rank $lost"
  said=$(grep -c "is lost" "lost$lost/run.log")
  [[ $said == 1 ]] || fail "run.log says $said times that a rank is lost"
  [[ $(wc -l < out.log) -lt 60 ]] || fail "too many last words"
  python3 - "lost$lost/exit.json" $lost <<'PY' || fail "exit.json"
import json, sys
end = json.load(open(sys.argv[1]))
assert end["code"] == 76 and f"rank {sys.argv[2]} " in end["reason"] and end["step"] >= 25 and end["checkpoint"] >= 20, end
PY
  wait $job
done
run 4 input.toml -d lost2 --set "mesh.cuboid=[1,2,2]" --set run.steps=30

expect_status 0
grep -q "resumed from\|nothing is left" out.log || fail "the run does not continue"

# All ranks stopped for longer than a wait may take.
start stopped 2 5 --set "mesh.cuboid=[2,1,1]" --set debug.watchdog_seconds=2
kill -STOP $ranks
sleep 5
lines=$(wc -l < stopped/log.jsonl)
kill -CONT $ranks
for _ in $(seq 500); do
  (($(wc -l < stopped/log.jsonl) > lines + 20)) && break
  kill -0 $job 2> /dev/null || fail "the run ended when it was continued"
  sleep 0.02
done
(($(wc -l < stopped/log.jsonl) > lines + 20)) || fail "no steps after the pause"
kill -TERM $ranks
wait $job
python3 -c 'import json; assert json.load(open("stopped/exit.json"))["code"] == 75' || fail "exit.json of the stopped run"
