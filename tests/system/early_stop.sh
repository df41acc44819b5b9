# A signal that comes before the first step ends the job there, on all ranks: 75, no new checkpoint, the
# old one stays, exit.json says so.
# rotates
. "$T3D_SOURCE/tests/support/job.sh"
shim=$(dirname "$T3D_BIN")/tests/libt3d_io_fault.so
[[ -e $shim ]] || fail "no $shim"
make_text 20000
make_input
long=(input.toml --set run.steps=1000000 --set log.every_steps=1000000)
pair=(mpirun -n 2 --oversubscribe "$T3D_BIN" "${long[@]}" --set "mesh.cuboid=[2,1,1]")

blocks_term() { # PID: it is the program, and has come so far that signals wait
  local mask
  [[ $(cat "/proc/$1/comm" 2> /dev/null) == transformer3d* ]] || return 1
  mask=$(sed -n 's/^SigBlk:\s*//p' "/proc/$1/status" 2> /dev/null)
  (((0x${mask:-0} >> 14) & 1))
}
reads() { # PID FILE: it has the file open, and so its ranks have met
  ls -l "/proc/$1/fd" 2> /dev/null | grep -q "$2\$"
}
rank_of() { # MPIRUN: the process of its last rank
  cat "/proc/$1"/task/*/children 2> /dev/null | tr -s ' ' '\n' | tail -n 1
}
# slow FILE COMMAND...: in the background as $job; the first reading of FILE takes two seconds
slow() {
  local file=$1
  shift
  LD_PRELOAD=$shim IO_FAULT_READ=$file IO_FAULT_READ_SECONDS=2 "$@" > out.log 2>&1 &
  job=$!
}
until_true() { # COMMAND...
  for _ in $(seq 1000); do
    "$@" && return
    sleep 0.01
  done
  fail "not within 10 s: $*"
}
ends_early() { # STATUS DIR STEP CHECKPOINT
  wait $job
  status=$?
  expect_status "$1"
  expect_text "asked to stop by a signal before the first step"
  python3 - "$2/exit.json" "$3" "$4" <<'PY' || fail "exit.json"
import json, sys
end = json.load(open(sys.argv[1]))
assert (end["code"], str(end["step"]), str(end["checkpoint"])) == (75, *sys.argv[2:]), end
assert "before the first step" in end["reason"], end
PY
}

# While corpus or input are read: one process, then one rank of two, then all ranks of mpirun.
slow text.txt "$T3D_BIN" "${long[@]}" -d one
until_true blocks_term $job
kill -TERM $job
ends_early 75 one 0 None
[[ -z $(ls one/ckpt) && ! -s one/log.jsonl ]] || fail "a step was done"

rank_reads() { reads "$(rank_of $job)" "$1"; }
first_rank() { tr -s ' ' '\n' < <(cat /proc/$job/task/*/children 2> /dev/null) | head -n 1; }
first_reads() { reads "$(first_rank)" "$1"; }
# The first rank reads the input for all.
slow input.toml "${pair[@]}" -d two
until_true first_reads input.toml
kill -TERM "$(rank_of $job)"
ends_early 75 two 0 None
slow input.toml "${pair[@]}" -d two
until_true first_reads input.toml
kill -USR2 $job
ends_early 75 two 0 None
[[ -z $(ls two/ckpt) && ! -s two/log.jsonl ]] || fail "a step was done"

# While a checkpoint is loaded: it stays, nothing else is written, and the next start goes on from it.
run 2 input.toml -d two --set "mesh.cuboid=[2,1,1]"
expect_status 0
cp two/log.jsonl before.jsonl
slow .h5 "${pair[@]}" -d two
until_true rank_reads '\.h5'
kill -TERM "$(rank_of $job)"
ends_early 75 two 20 20
[[ $(ls two/ckpt) == step-00000020 ]] || fail "checkpoints: $(ls two/ckpt)"
cmp -s before.jsonl two/log.jsonl || fail "log.jsonl was changed"
run 2 input.toml -d two --set "mesh.cuboid=[2,1,1]" --set run.steps=22
expect_status 0
expect_text "resumed from two/ckpt/step-00000020 at step 20"

# While another job's lock is waited for: its exit.json is not ours to write.
"$T3D_BIN" "${long[@]}" -d held > held.log 2>&1 &
first=$!
trap 'kill -KILL $first 2> /dev/null' EXIT
until_true grep -qs '"step":3,' held/log.jsonl
kill -STOP $first
"$T3D_BIN" "${long[@]}" -d held > out.log 2>&1 &
job=$!
until_true grep -q "last sign of life" out.log
kill -TERM $job
wait $job
status=$?
expect_status 75
expect_text "asked to stop by a signal while waiting"
[[ ! -e held/exit.json ]] || fail "exit.json of a job that waited"

# Before the ranks have met: one of them never comes. A signal ends the others at once, and so does the deadline.
printf '#!/bin/bash\n((OMPI_COMM_WORLD_RANK == 1)) && exec sleep 1000\nexec "$@"\n' > one_missing
chmod +x one_missing
"${pair[@]:0:4}" ./one_missing "$T3D_BIN" "${long[@]}" -d unmet > out.log 2>&1 &
job=$!
first_blocks() { blocks_term "$(first_rank)"; }
until_true first_blocks
kill -TERM "$(first_rank)"
wait $job
status=$?
expect_status 75
expect_text "asked to stop by a signal before the ranks had met"
T3D_LAUNCH_SECONDS=0.5 timeout 60 "${pair[@]:0:4}" ./one_missing "$T3D_BIN" "${long[@]}" -d unmet > out.log 2>&1
status=$?
expect_status 76
expect_text "the ranks have not met within"
[[ ! -e unmet ]] || fail "a folder of a run that never began"
