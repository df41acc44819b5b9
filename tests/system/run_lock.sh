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

# A lock that somebody removed is taken again: the run goes on and says so.
"$T3D_BIN" input.toml -d lost "${small[@]}" --set run.steps=1000000 --set checkpoint.every_steps=50 > first.log 2>&1 &
first=$!
for _ in $(seq 500); do ls lost/ckpt 2> /dev/null | grep -q step- && break; sleep 0.02; done
rm lost/run.lock lost/ckpt/run.lock
for _ in $(seq 300); do grep -q "ckpt/run.lock was removed" lost/run.log && break; sleep 0.05; done
cp first.log out.log
for lock in lost/run.lock lost/ckpt/run.lock; do
  grep -q "warning: $lock was removed by somebody; this job has taken it again" lost/run.log || fail "no warning of $lock"
  grep -q "\"pid\":$first," "$lock" || fail "$lock is not of the job"
done
run 1 input.toml -d lost "${small[@]}"
expect_status 69

# A job whose lock is another's ends without touching that folder; the folder that is still its own tells why.
sed "s/\"token\":\"[0-9a-f]*\"/\"token\":\"0123456789abcdef\"/" lost/ckpt/run.lock > other
mv other lost/ckpt/run.lock
wait $first
status=$?
cp first.log out.log
expect_status 69
expect_text "lost/ckpt/run.lock is not ours any more: it was taken over by"
grep -q '"code": *69' lost/exit.json || fail "no exit.json"
[[ -e lost/ckpt/run.lock ]] || fail "the other's lock was removed"

# A handle that went stale for good: the lock is renewed through another one. Beside it a client whose clock is ahead
# and sets it on files: it does not take a lock that is renewed.
LD_PRELOAD=$shim IO_FAULT_DEAD=run.lock IO_FAULT_DEAD_FROM=$PWD/dead \
  "$T3D_BIN" input.toml -d evicted "${small[@]}" --set run.steps=1000000 > first.log 2>&1 &
first=$!
for _ in $(seq 500); do grep -q '"step":3,' evicted/log.jsonl 2> /dev/null && break; sleep 0.02; done
touch dead
for _ in $(seq 200); do grep -q "evicted/run.lock could not be renewed .*it was opened again" evicted/run.log && break; sleep 0.05; done
grep -q "warning: evicted/run.lock could not be renewed" evicted/run.log || fail "no warning: $(tail -n 3 first.log)"
before=$(stat -c %y evicted/run.lock)
sleep 2.5
[[ $(stat -c %y evicted/run.lock) != "$before" ]] || fail "the lock is not renewed"
LD_PRELOAD=$shim IO_FAULT_AHEAD=75 "$T3D_BIN" input.toml -d evicted "${small[@]}" --set run.steps=2 > out.log 2>&1
status=$?
expect_status 69
expect_text "evicted/run.lock is held by process $first .* is alive"
kill -TERM $first
wait $first
status=$?
cp first.log out.log
expect_status 75

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

# A file system that hangs while the lock is renewed: the job steps on, and ends when it is asked to.
LD_PRELOAD=$shim IO_FAULT_HANG=run.lock IO_FAULT_HANG_WHILE=$PWD/hangs \
  "$T3D_BIN" input.toml -d hung "${small[@]}" --set run.steps=1000000 > first.log 2>&1 &
first=$!
for _ in $(seq 500); do grep -q '"step":3,' hung/log.jsonl 2> /dev/null && break; sleep 0.02; done
touch hangs
sleep 3
kill -TERM $first
for _ in $(seq 300); do kill -0 $first 2> /dev/null || break; sleep 0.1; done
! kill -0 $first 2> /dev/null || fail "it does not end while the file system hangs"
wait $first
status=$?
cp first.log out.log
expect_status 75
[[ -e hung/run.lock ]] || fail "the lock was given back"
rm hangs

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
expect_text "warning: of earlier starts of this run, .*l/ckpt/step-00000012, l/ckpt/step-00000008"
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

# An emptied checkpoint folder is no new run where the records of lives know better, also where the life was killed.
run 1 input.toml -d purged "${small[@]}" --set run.steps=4
expect_status 0
"$T3D_BIN" input.toml -d purged "${small[@]}" --set run.steps=1000000 --set checkpoint.every_steps=50 > first.log 2>&1 &
first=$!
for _ in $(seq 500); do grep -q '"saved_step":[1-9]' purged/life.json 2> /dev/null && break; sleep 0.02; done
kill -KILL $first
wait $first 2> /dev/null
cp -r purged/ckpt kept
rm -r purged/ckpt
cp purged/log.jsonl before.jsonl
for _ in 1 2; do  # the second finds a life that began and ended without one
  run 1 input.toml -d purged "${small[@]}"
  expect_status 74
  expect_text "purged/ckpt holds no checkpoint, but life 2 of this run had one of step [0-9]*0 in purged/ckpt .*-r never starts over"
  cmp before.jsonl purged/log.jsonl || fail "the log was changed"
done
run 1 input.toml -d purged "${small[@]}" --set "checkpoint.dir='elsewhere_now'"
expect_status 74
expect_text "or with checkpoint.dir = \"purged/ckpt\" as before"
mkdir -p purged/ckpt
oldest=$(ls kept | grep -v partial | grep '^step-' | sort | head -n 1)
cp -r "kept/$oldest" purged/ckpt/
run 1 input.toml -d purged "${small[@]}" --set run.steps=$((10#${oldest#step-} + 2))
expect_status 0
expect_text "warning: life 2 of this run had a checkpoint of step [0-9]*0 in purged/ckpt, which is not there any more"
rm -r purged/ckpt
run 1 input.toml -d purged "${small[@]}" -r never --set run.steps=6
expect_status 0
run 1 input.toml -d purged "${small[@]}" --set run.steps=8
expect_status 0
expect_text "resumed from purged/ckpt/step-00000006 at step 6"
