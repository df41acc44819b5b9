# A file system that pauses for longer than the watchdog allows, while a line of a log or a file of the run is
# written: the steps go on, the run does not end, and no line is lost.
# rotates
. "$T3D_SOURCE/tests/support/job.sh"
shim=$(dirname "$T3D_BIN")/tests/libt3d_io_fault.so
[[ -e $shim ]] || fail "no $shim"
make_text 20000
make_input

# One operation on the file takes 6 s; other ranks wait for 2 s at most.
slow() { # DIR FILE NUMBER
  export LD_PRELOAD=$shim IO_FAULT_PREFIX=$PWD/$1/$2 IO_FAULT_AT=$3 IO_FAULT_MODE=delay IO_FAULT_SECONDS=6
  run 2 input.toml -d "$1" --set "mesh.cuboid=[2,1,1]" --set log.csv=true --set log.tensorboard=true \
    --set debug.watchdog_seconds=2 --set checkpoint.every_steps=5
  unset LD_PRELOAD
  expect_status 0
  [[ $(wc -l < "$1/log.jsonl") == 20 && $(wc -l < "$1/log.csv") == 21 ]] || fail "$1: lines are missing"
}
slow json log.jsonl 10
slow people run.log 20
slow table log.csv 8
slow events tensorboard/ 8
# Before the steps rank 0 writes alone: it says that it is busy. The record of the first step does not hold the second.
slow busy life.json 6
slow life life.json 10
# Nor does that of a checkpoint.
slow saved life.json 14
python3 - <<'PY' || fail "a step has waited for life.json"
import json
lines = [json.loads(line) for line in open("saved/log.jsonl")]
assert max(line["seconds"] for line in lines) < 3, [line["seconds"] for line in lines]
PY
