# A job that is suspended (all ranks stopped) for longer than a lost node, a wait and the lock are given: it goes on
# where nobody has taken the folder, and whoever tries meanwhile is refused. Where a job that cannot see its process has
# taken the folder, it says so and ends.
# slow: minutes in which a lock is silent
. "$T3D_SOURCE/tests/support/job.sh"
make_text 20000
make_input
start() { # DIR STEPS: `job`, and `ranks` once it steps
  mpirun -n 2 --oversubscribe "$T3D_BIN" input.toml -d "$1" --set "mesh.cuboid=[2,1,1]" --set run.steps="$2" \
    --set debug.lost_seconds=2 --set debug.watchdog_seconds=5 --set checkpoint.every_steps=500 > "$1.log" 2>&1 &
  job=$!
  for _ in $(seq 600); do
    ls "$1/ckpt" 2> /dev/null | grep -q '^step-[0-9]*$' && break
    kill -0 $job || fail "$1: $(tail -n 5 "$1.log")"
    sleep 0.05
  done
  ranks=$(cat "/proc/$job"/task/*/children)
  [[ $(wc -w <<< "$ranks") == 2 ]] || fail "$1: ranks: $ranks"
}
start alone 1000000
alone=$job alone_ranks=$ranks
start taken 1000000
taken=$job taken_ranks=$ranks
kill -STOP $alone_ranks $taken_ranks
lines=$(wc -l < alone/log.jsonl)
# From another namespace of processes nothing is known of the owner but its silence.
hidden=0
if unshare --pid --fork true 2> /dev/null; then
  hidden=1
  timeout 200 unshare --pid --fork "$T3D_BIN" input.toml -d taken --set run.steps=1000000 > other.log 2>&1 &
  other=$!
fi
run 1 input.toml -d alone
expect_status 69
sleep 45
for ((look = 0; hidden && look < 1200; ++look)); do
  [[ $(grep -c '"step"' taken/log.jsonl) -gt 0 ]] && grep -q '^step ' other.log && break
  kill -0 $other || fail "the other job: $(tail -n 5 other.log)"
  sleep 0.1
done
kill -CONT $alone_ranks $taken_ranks
for _ in $(seq 500); do
  (($(wc -l < alone/log.jsonl) > lines + 20)) && break
  kill -0 $alone 2> /dev/null || fail "the run ended when it was continued: $(tail -n 5 alone.log)"
  sleep 0.05
done
(($(wc -l < alone/log.jsonl) > lines + 20)) || fail "no steps after the pause"
kill -TERM $alone_ranks
wait $alone
grep -q '"code": 75' alone/exit.json || fail "exit.json: $(cat alone/exit.json)"
! grep -v '^to continue' alone/run.log | grep -q 'lost' || fail "taken for lost: $(cat alone/run.log)"
if ((hidden)); then
  wait $taken
  status=$?
  [[ $status == 69 ]] || fail "it ended with $status though the folder is another job's: $(tail -n 5 taken.log)"
  grep -q 'run.lock' taken.log || fail "no word of the lock: $(tail -n 5 taken.log)"
  kill -0 $other || fail "the other job: $(tail -n 5 other.log)"
  kill -TERM $(cat "/proc/$other"/task/*/children)
  wait $other
  kill -TERM $taken_ranks 2> /dev/null
  grep -q '"code": 75' taken/exit.json || fail "exit.json is not the other job's: $(cat taken/exit.json)"
else
  kill -KILL $taken_ranks
fi
true
