# Memory that is short while ranks write a checkpoint costs that checkpoint, not the run.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 20000
make_input
export MALLOC_ARENA_MAX=1 # else a thread's reserve helps out
mpirun -n 2 --oversubscribe "$T3D_BIN" input.toml -d r --set run.steps=1000000 --set "mesh.cuboid=[2,1,1]" \
  --set model.hidden=256 --set model.layers=6 --set checkpoint.every_steps=10 --set checkpoint.verify=false --set checkpoint.asynchronous=off > out.log 2>&1 &
job=$!
trap 'kill -KILL $job 2> /dev/null' EXIT
until_said() { # TEXT
  for _ in $(seq 400); do
    grep -q -- "$1" out.log && return
    kill -0 $job || fail "the job has ended"
    sleep 0.05
  done
  fail "no '$1' within 20 s"
}
limit() { # of address space for the last rank, in MiB above what it has now; none without
  local rank
  rank=$(cat "/proc/$job"/task/*/children | tr -s ' ' '\n' | tail -n 1)
  python3 - "$rank" "${1:-}" <<'PY'
import resource, sys
pid, spare = int(sys.argv[1]), sys.argv[2]
now = int(open(f"/proc/{pid}/statm").read().split()[0]) * resource.getpagesize()
soft = now + (int(spare) << 20) if spare else resource.RLIM_INFINITY
resource.prlimit(pid, resource.RLIMIT_AS, (soft, resource.RLIM_INFINITY))
PY
}
until_said '^step 5/'
limit 4
until_said 'no checkpoint of step 10: out of memory'
limit
until_said 'checkpoint r/ckpt/step-'
kill -USR1 $job
wait $job
status=$?
trap - EXIT
expect_status 75
