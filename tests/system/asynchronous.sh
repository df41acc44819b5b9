# Checkpoints that are written beside the steps: the numbers are those of a run that waits for them; a writer that
# dies or hangs costs a warning; who stops meanwhile loses nothing.
# rotates
. "$T3D_SOURCE/tests/support/job.sh"
make_text 60000
make_input
base=(--set "mesh.cuboid=[2,1,1]" --set model.hidden=128 --set run.steps=30 --set checkpoint.every_steps=10
  --set checkpoint.keep=9)
digests() { grep -o 'checkpoint .*step-[0-9]*\|digest [0-9a-f]*' "$1/run.log" | sed 's/.*ckpt.//' | tr '\n' ' '; }

run 2 input.toml -d waits "${base[@]}" --set checkpoint.asynchronous=off
expect_status 0
run 2 input.toml -d beside "${base[@]}"
expect_status 0
grep -q 'beside the steps' beside/run.log || fail "not asynchronous"
[[ "$(digests waits)" == "$(digests beside)" ]] || fail "digests: $(digests waits) and $(digests beside)"
same_losses waits beside 0

# Under another mesh, and from the middle: the digest that is loaded is that which was saved.
rm -rf beside/ckpt/step-0000002* beside/ckpt/step-0000003*
run 4 input.toml -d beside "${base[@]}" --set "mesh.cuboid=[1,2,2]"
expect_status 0
grep -q 'digest of the state [0-9a-f]*, as in the checkpoint' beside/run.log || fail "what was loaded is not what was saved"

# Steps without targets prove nothing of the weights: checkpoints that stay for it go later, and none that is
# being written goes with them.
{ cat text.txt; head -c 30000 /dev/zero | tr '\0' '~'; } > padded.txt
run 2 input.toml -d skips "${base[@]}" --set data.train=padded.txt --set data.ignore_token=126 --set data.shuffle=false \
  --set batch.sequences=200 --set batch.micro=100 --set schedule.kind=constant --set checkpoint.every_steps=1 --set checkpoint.keep=1 \
  --set run.steps=40
expect_status 0
grep -q 'no target of its samples counts' skips/run.log || fail "every step has targets"
! grep -q 'no checkpoint of step' skips/run.log || fail "checkpoints were lost: $(grep 'no checkpoint' skips/run.log | head -n 2)"
[[ $(ls skips/ckpt | grep -c '^step') -le 2 ]] || fail "too many checkpoints: $(ls skips/ckpt)"

# The process that writes, of a run in the background: $writer. Its rank does not wait for it. Its first operation takes
# longer, so that it is found before it has answered.
faults=$(dirname "$T3D_BIN")/tests/libt3d_io_fault.so
trap 'kill -KILL $(cat /proc/${job:-0}/task/*/children) ${job:-} 2> /dev/null' EXIT
start() { # DIR, file | publish, arguments
  local dir=$1 what=$2
  shift 2
  LD_PRELOAD=$faults IO_FAULT_PROCESS=$what IO_FAULT_PREFIX=$PWD/$dir IO_FAULT_AT=1 IO_FAULT_MODE=delay IO_FAULT_SECONDS=2 \
    mpirun -n 2 --oversubscribe "$T3D_BIN" input.toml -d "$dir" "${base[@]}" --set run.steps=100000 "$@" > out.log 2>&1 &
  job=$!
  for _ in $(seq 3000); do
    writer=$(writer_of "$dir" "$what") && return
    kill -0 $job || fail "the run has ended"
  done
  fail "no process that writes"
}
# A signal also succeeds on a process that has ended and is not yet waited for.
stopped() {
  local state
  for _ in $(seq 500); do
    state=$(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2> /dev/null) || return
    [[ $state == T ]] && return
    [[ $state == Z ]] && return 1
  done
  return 1
}
# Found while it is at work, and stopped there.
writer_of() {
  local pid
  for pid in $(cat "/proc/$job"/task/*/children 2> /dev/null); do
    for pid in $(cat "/proc/$pid"/task/*/children 2> /dev/null); do
      { tr '\0' ' ' < "/proc/$pid/cmdline"; } 2> /dev/null | grep -q "checkpoint-writer [0-9]* $2" || continue
      kill -STOP "$pid" 2> /dev/null && stopped "$pid" && echo "$pid" && return
    done
  done
  return 1
}
until_said() { # TEXT
  for _ in $(seq 600); do
    grep -q -- "$1" out.log && return
    kill -0 $job 2> /dev/null || fail "the run has ended without '$1'"
    sleep 0.05
  done
  fail "no '$1' within 30 s"
}
# A checkpoint after those that are there.
until_another() {
  local before
  before=$(grep -c 'beside the steps' out.log)
  for _ in $(seq 600); do
    (($(grep -c 'beside the steps' out.log) > before)) && return
    kill -0 $job 2> /dev/null || fail "the run has ended"
    sleep 0.05
  done
  fail "no other checkpoint within 30 s"
}
end_job() { # STATUS
  wait $job
  status=$?
  expect_status "$1"
}

for what in file publish; do
  start "killed-$what" $what
  kill -KILL "$writer"
  until_said 'no checkpoint of step [0-9]*: the process that writes the checkpoint has ended: by signal Killed'
  until_another
  kill -USR1 $job
  end_job 75
done
ls killed-file/ckpt | grep -q partial && fail "left over: $(ls killed-file/ckpt)"

# The process computes on the cores of the job's ranks on its host, and on no others.
program=$T3D_BIN
use_one_core
start cores file
[[ $(taskset -cp "$writer" | sed 's/.*: *//') == "$core" ]] || fail "the writer is on $(taskset -cp "$writer")"
kill -CONT "$writer"
kill -USR1 $job
end_job 75
T3D_BIN=$program

# At a stop there is no later checkpoint: then the ranks write it themselves.
start stop file --set checkpoint.every_steps=0 --set checkpoint.every_minutes=0.005
kill -USR1 $job
kill -KILL "$writer"
for _ in $(seq 3000); do
  writer=$(writer_of stop file) && break
  kill -0 $job || fail "nobody writes the last checkpoint"
done
kill -KILL "$writer"
end_job 75
[[ $(grep -c 'no checkpoint of step' out.log) == 2 && $(ls stop/ckpt | grep -c '^step') == 1 ]] || fail "$(ls stop/ckpt)"

# It hangs: steps go on; a stop waits for it.
start hangs file --set checkpoint.every_steps=0 --set checkpoint.every_minutes=0.005
before=$(grep -c '^step' out.log)
sleep 2
(($(grep -c '^step' out.log) > before + 3)) || fail "the steps wait for the writer"
kill -USR1 $job
sleep 1
kill -0 $job || fail "the stop has not waited"
kill -CONT "$writer"
end_job 75
[[ $(ls hangs/ckpt | grep -c '^step') == 2 ]] || fail "$(ls hangs/ckpt)" # that one, and that of the stop
run 2 input.toml -d hangs "${base[@]}" --set run.steps=1
[[ $(sed -n 's/.*"checkpoint": *\([0-9]*\).*/\1/p' hangs/exit.json) == $(ls hangs/ckpt | tail -n 1 | sed 's/step-0*//') ]] ||
  fail "exit.json: $(cat hangs/exit.json)"

# It hangs for good, as a file system may: it is given up after debug.io_seconds.
start stuck file --set debug.io_seconds=4
until_said 'it took longer than debug.io_seconds'
until_another
kill -USR1 $job
end_job 75

# The last evaluation reads the whole text. Whoever dies in it loses no step: the last checkpoint is published before.
for n in $(seq 20); do cat text.txt; done > valid.txt
mpirun -n 2 --oversubscribe "$T3D_BIN" input.toml -d last "${base[@]}" --set run.steps=5 --set data.valid=valid.txt > out.log 2>&1 &
job=$!
until_said 'step-00000005 in'
kill -KILL $(cat "/proc/$job"/task/*/children)
wait $job
grep -q 'validation loss' last/run.log && fail "the evaluation was over before"
[[ -e last/ckpt/step-00000005/MANIFEST.json ]] || fail "no checkpoint of the last step"
run 2 input.toml -d last "${base[@]}" --set run.steps=5 --set data.valid=valid.txt
expect_status 0
expect_text "the validation after the last one is made up for"
