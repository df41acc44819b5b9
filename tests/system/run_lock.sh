# One job per run folder; and which checkpoints a start goes on from after -r never and -r OLDER.
# rotates
. "$T3D_SOURCE/tests/support/job.sh"
shim=$(dirname "$T3D_BIN")/tests/libt3d_io_fault.so
[[ -e $shim ]] || fail "no $shim"
make_text 20000
make_input
small=(--set model.hidden=16 --set model.layers=1)

# A second job beside a running one, by any of the two folders: refused, and it changes nothing.
"$T3D_BIN" input.toml -d r "${small[@]}" --set run.steps=1000000 > first.log 2>&1 &
first=$!
trap 'kill -KILL $first 2> /dev/null' EXIT
for _ in $(seq 500); do grep -q '"step":3,' r/log.jsonl 2> /dev/null && break; sleep 0.02; done
before=$(cat r/resolved.toml)
for other in "-d r --set run.steps=2 -r never" "-d elsewhere --set checkpoint.dir='r/ckpt'"; do
  # shellcheck disable=SC2086
  run 1 input.toml $other "${small[@]}" --set batch.micro=2
  expect_status 69
  expect_text "process $first on $(hostname)"
  expect_text "two jobs cannot train in one folder"
done
[[ $(cat r/resolved.toml) == "$before" ]] || fail "the second job wrote into the run folder"
[[ ! -e elsewhere/log.jsonl ]] || fail "the second job wrote a log"
kill -0 $first || fail "the first job has ended"

# Reading needs no lock. A killed job's lock is taken at once.
kill -TERM $first
wait $first
status=$?
expect_status 75
[[ ! -e r/run.lock && ! -e r/ckpt/run.lock ]] || fail "a lock stays after the end"
"$T3D_BIN" input.toml -d r "${small[@]}" --set run.steps=1000000 > first.log 2>&1 &
first=$!
for _ in $(seq 500); do grep -q 'resumed from' first.log && break; sleep 0.02; done
run 1 eval r text.txt
expect_status 0
kill -KILL $first
wait $first 2> /dev/null
[[ -e r/run.lock ]] || fail "a killed job gave its lock back"
SECONDS=0
run 1 input.toml -d r "${small[@]}" -r never --set run.steps=2
expect_status 0
((SECONDS < 10)) || fail "the lock of a dead process was waited for"

# A job that has lost its lock ends without touching the folder.
"$T3D_BIN" input.toml -d lost "${small[@]}" --set run.steps=1000000 --set checkpoint.every_steps=50 > first.log 2>&1 &
first=$!
for _ in $(seq 500); do ls lost/ckpt 2> /dev/null | grep -q step- && break; sleep 0.02; done
rm lost/run.lock
wait $first
status=$?
cp first.log out.log
expect_status 69
expect_text "lost/run.lock is not ours any more"

# A lock that cannot be opened for some seconds (NFS: stale file handle) is not lost.
touch stale
LD_PRELOAD=$shim IO_FAULT_STALE=run.lock IO_FAULT_STALE_WHILE=$PWD/stale \
  "$T3D_BIN" input.toml -d stale_lock "${small[@]}" --set run.steps=1000000 > first.log 2>&1 &
first=$!
for _ in $(seq 500); do grep -q '"step":3,' stale_lock/log.jsonl 2> /dev/null && break; sleep 0.02; done
sleep 5
kill -0 $first || fail "a stale file handle stopped the run: $(tail -n 3 first.log)"
rm stale
kill -TERM $first
wait $first
status=$?
cp first.log out.log
expect_status 75
grep -q '"code": *75' stale_lock/exit.json || fail "no exit.json"

# Started anew and killed before its first checkpoint: the run before goes on, with its log.
run 1 input.toml -d anew "${small[@]}" --set run.steps=10
expect_status 0
cp anew/log.jsonl whole.jsonl
"$T3D_BIN" input.toml -d anew "${small[@]}" --set run.steps=1000000 -r never > first.log 2>&1 &
first=$!
for _ in $(seq 500); do grep -q '"step":3,' anew/log.jsonl && ! grep -q '"step":10,"steps":10' anew/log.jsonl && break; sleep 0.02; done
kill -KILL $first
wait $first 2> /dev/null
cmp whole.jsonl anew/log.lineage-0.jsonl || fail "the log of the lineage before is not there"
run 1 input.toml -d anew "${small[@]}" --set run.steps=12
expect_status 0
expect_text "resumed from anew/ckpt/step-00000010 at step 10"
cmp whole.jsonl <(head -n 10 anew/log.jsonl) || fail "the records are lost"
[[ ! -e anew/log.lineage-0.jsonl && $(wc -l < anew/log.jsonl) == 12 ]] || fail "two logs of one lineage"

# Lineages: a run started anew in a folder with higher steps is the one that auto continues.
run 1 input.toml -d l "${small[@]}" --set run.steps=12 --set checkpoint.every_steps=4 --set checkpoint.keep=3
expect_status 0
run 1 input.toml -d l "${small[@]}" --set run.steps=6 --set checkpoint.every_steps=2 --set checkpoint.keep=2 -r never
expect_status 0
expect_text "warning: .*l/ckpt/step-00000012, l/ckpt/step-00000008.* are of earlier starts of this run"
run 1 input.toml -d l "${small[@]}" --set run.steps=8
expect_status 0
expect_text "resumed from l/ckpt/step-00000006.lineage-1 at step 6"
run 1 input.toml -d l "${small[@]}" --set run.steps=10 -r l/ckpt/step-00000004
expect_status 0
expect_text "resumed from l/ckpt/step-00000004 at step 4"
run 1 eval l text.txt
expect_text "step-00000010.lineage-2"
run 1 input.toml -d l "${small[@]}" --set run.steps=14
expect_text "resumed from l/ckpt/step-00000010.lineage-2 at step 10"
expect_text "l/ckpt/step-00000008.lineage-1"
left=$(ls l/ckpt | tr '\n' ' ')
[[ $left == "step-00000004 step-00000006.lineage-1 step-00000008 step-00000008.lineage-1 step-00000010.lineage-2 step-00000012 step-00000014.lineage-2 " ]] ||
  fail "left in the folder: $left"

# A folder whose manifests are gone is not an empty one; nothing is written before that is known.
before=$(cat l/log.jsonl)
rm l/ckpt/*/MANIFEST.json
run 1 input.toml -d l "${small[@]}"
expect_status 74
expect_text "l/ckpt holds .*but not one MANIFEST.json"
[[ $(cat l/log.jsonl) == "$before" ]] || fail "the log was replaced"
run 1 input.toml -d l "${small[@]}" -r never --set run.steps=2
expect_status 0
