# Every kind of bad input: a clear message within 60 s, the right exit code, no hang, nothing lost.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 20000
make_input
bad() { # STATUS TEXT RANKS args...
  local want=$1 text=$2
  shift 2
  run "$@"
  expect_status "$want"
  expect_text "$text"
}
bad 66 "nowhere.toml" 1 nowhere.toml
bad 66 "nowhere.toml" 2 nowhere.toml
bad 64 "" 1 --no-such-option
bad 64 "lr" 1 --explain optimizer.lrr
bad 78 "did you mean" 1 input.toml --set optimizer.learning=1
bad 78 "model.layers" 1 input.toml --set model.layers=many
sed 's/hidden = 32/hiden = 32/; s/heads = 4/heads = "four"/; s/sequences = 8/sequences = -8/' input.toml > faults.toml
bad 78 "faults.toml:[0-9]*:[0-9]*: .*hiden" 1 faults.toml
expect_text "heads"
expect_text "sequences"
bad 78 "ranks" 2 input.toml --set "mesh.cuboid=[2,2,2]"
bad 78 "mesh.tokens" 2 input.toml --set "mesh.cuboid=[2,1,1]" --set "mesh.tokens=[1,-1]"
bad 78 "mesh.outputs" 2 input.toml --set "mesh.cuboid=[1,2,1]" --set "mesh.outputs=[1,2,3]"
bad 78 "place" 2 input.toml --set "mesh.cuboid=[1,2,1]" --set "mesh.place=[1,1]"
bad 78 "heads" 1 input.toml --set model.heads=5
# Every wait has a limit.
bad 78 "debug.io_seconds cannot be 0" 1 input.toml --set debug.io_seconds=0
bad 78 "debug.watchdog_seconds cannot be 0" 1 input.toml --set debug.watchdog_seconds=0
# Aggregation: the key is named, also where two keys disagree.
adasum=(input.toml --set aggregate.method=adasum)
three=("${adasum[@]}" --set mesh.replicas=3 --set "mesh.cuboid=[1,1,1]")
bad 78 "aggregate.reference_batch" 1 "${adasum[@]}" --set aggregate.reference_batch=0
bad 78 "aggregate.algorithm" 1 "${adasum[@]}" --set aggregate.algorithm=rwh
expect_text "allowed: auto, gram, flat"
# The key and a word of earlier versions are still read: rvh is gram now.
run 1 "${adasum[@]}" -d old --set aggregate.transport=rvh --set run.steps=1
expect_status 0
grep -q 'algorithm = "gram"' old/resolved.toml || fail "aggregate.transport=rvh is not read as gram"
bad 78 "aggregate.placement" 1 "${adasum[@]}" --set aggregate.placement=before
expect_text "allowed: auto, pre"
bad 78 "aggregate.method" 1 input.toml --set aggregate.method=adasun
expect_text "adasum"
bad 78 "batch.shares has 2 weights" 3 "${three[@]}" --set "batch.shares=[1,2]"
expect_text "mesh.replicas = 3"
bad 78 "batch.shares are all 0" 3 "${three[@]}" --set "batch.shares=[0,0,0]"
bad 78 "batch.shares" 3 "${three[@]}" --set "batch.shares=[1,-1,1]"
bad 78 "aggregate.leaves" 3 "${three[@]}" --set aggregate.leaves=22 --set batch.sequences=66
expect_text "more than 64"
bad 78 "aggregate.leaves" 3 "${three[@]}" --set aggregate.leaves=4
bad 78 "aggregate.leaves" 1 "${adasum[@]}" --set aggregate.leaves=0
bad 78 "aggregate.wire" 1 "${adasum[@]}" --set aggregate.algorithm=flat --set aggregate.wire=bf16
bad 66 "absent" 2 input.toml --set "data.train='absent*.h5'"
bad 66 "debug.replan: absent.toml" 1 input.toml --set "debug.replan='5:absent.toml'"
bad 78 '"2:" is not STEP:FILE or STEP:same' 1 input.toml --set 'debug.replan=["2:"]'
bad 78 "debug.replan: input.toml is not a plan: line 2" 1 input.toml --set 'debug.replan=["2:input.toml"]'
# Speeds from a file: the key is named, and what is not read is said.
printf '{"ranks": %100000s' | tr ' ' '[' > deep.json
bad 78 'hetero.speeds = "file" needs hetero.file' 2 input.toml --set hetero.speeds=file
bad 66 "hetero.file: absent.json" 2 input.toml --set hetero.speeds=file --set hetero.file=absent.json
bad 78 "hetero.file: deep.json: brackets nest deeper than 16" 2 input.toml --set hetero.speeds=file --set hetero.file=deep.json
bad 78 'hetero.file is given, and hetero.speeds is "equal"' 2 input.toml --set hetero.file=deep.json
bad 0 "warning: hetero.file is not read: there is only one rank" 1 input.toml -d unread --set hetero.speeds=file --set hetero.file=deep.json --set run.steps=1
sed '/^\[hetero\]/,/^speeds/d' input.toml > nodes.toml
printf '[[nodes]]\nname = "absent*"\nthreads = 1\n' >> nodes.toml
bad 0 'warning: \[\[nodes\]\] 1 (name = "absent\*", threads = 1) fits no node; the nodes are ' 1 nodes.toml -d unmet --set run.steps=1
sed 's/threads = 1$/threads = 100000/' nodes.toml > threads.toml
bad 78 "threads.toml:[0-9]*:1: nodes.threads" 1 threads.toml
bad 78 "batch.shares" 3 "${three[@]}" --set "batch.shares=[1e400,1,1]"
bad 0 "steps" 3 "${three[@]}" -d huge --set "batch.shares=[1e307,1e307,1e307]" --dry-run 3
bad 78 "need model.vocab >= 256" 1 input.toml --set model.vocab=50
head -c 20 text.txt > short.txt
bad 78 "the corpus has 20 tokens" 1 input.toml --set "data.train='short.txt'"

# Token files
run 1 tokenize text.txt -o tokens --kind bytes
expect_status 0
run 1 inspect tokens-train.h5 --verify
expect_status 0
cp tokens-train.h5 cut.h5 && truncate -s 9000 cut.h5
bad 74 "cut.h5" 2 input.toml --set "data.train='cut.h5'" --set data.format=auto
cp tokens-train.h5 flipped.h5
python3 - <<'PY' || fail "no token to flip"
data = bytearray(open("flipped.h5", "rb").read())
at = data.find(open("text.txt").read(20).encode("utf-16le"))  # ids are bytes, 16 bits each
assert at > 0
data[at + 10] ^= 1
open("flipped.h5", "wb").write(data)
PY
bad 74 "flipped.h5" 1 inspect flipped.h5 --verify
bad 66 "" 1 tokenize absent.txt -o x
bad 66 "there is no" 1 inspect absent
bad 66 "there is no" 1 generate absent

# Checkpoints: a damaged one is named and passed over; with none left the run does not start over.
run 2 input.toml -d r --set "mesh.cuboid=[2,1,1]" --set checkpoint.every_steps=10
expect_status 0
file=$(ls r/ckpt/step-00000020/node-00000.*)
size=$(stat -c %s "$file")
printf '\125\252' | dd of="$file" bs=1 seek=$((size / 2)) conv=notrunc status=none
bad 0 "step-00000020" 2 input.toml -d r --set "mesh.cuboid=[2,1,1]"
expect_text "resumed from r/ckpt/step-00000010"
bad 78 "is of another model" 1 input.toml -d r --set model.hidden=64
bad 78 "is of another run.seed" 1 input.toml -d r --set run.seed=9
run 1 inspect r
expect_status 0
expect_text "^the newest checkpoint, r/ckpt/step-00000020"
run 1 inspect r/ckpt/step-00000010
expect_status 0
mkdir nothing
bad 66 "there is no checkpoint in nothing" 1 inspect nothing
# A model of Hugging Face's is told from a checkpoint, with the way to make one.
mkdir hub && echo '{"model_type": "gpt2"}' > hub/config.json
bad 66 "transformer3d import hub -o DIR" 1 inspect hub
bad 66 "transformer3d import hub -o DIR" 1 eval hub text.txt
bad 66 "transformer3d import hub -o DIR" 2 generate hub
bad 66 "text.txt is a file, and a checkpoint is a folder" 1 eval text.txt text.txt
bad 74 "step-00000099" 1 input.toml -d r -r r/ckpt/step-00000099
bad 78 "" 1 generate r --set mesh.cuboid=[9,9,9]

# Folders that cannot be written: this holds for root too.
touch file
bad 74 "file" 2 input.toml -d file/run --set "mesh.cuboid=[2,1,1]"
if mkdir -p full && mount -t tmpfs -o size=1600k tmpfs full 2> /dev/null; then
  # A disk that fills up: training goes on, the first checkpoint stays, the exit code tells.
  run 1 input.toml -d full/run --set checkpoint.every_steps=5 --set checkpoint.keep=9
  cp out.log full.log
  kept=$(ls full/run/ckpt | head -n 1)
  (( status == 74 )) || { umount full; fail "exit code $status on a full disk"; }
  grep -qi "space" full.log || { umount full; fail "no word about space"; }
  rm -rf full/run/log.jsonl full/run/run.log
  run 1 inspect "full/run/ckpt/$kept" --verify
  umount full
  expect_status 0
fi

# One rank that dies at start, and one whose input differs from the others'.
cat > die.sh <<'SH'
#!/bin/sh
[ "${OMPI_COMM_WORLD_RANK:-0}" = 1 ] && exit 9
exec "$@"
SH
chmod +x die.sh
timeout 60 mpirun -n 3 --oversubscribe ./die.sh "$T3D_BIN" input.toml -d d --set "mesh.cuboid=[3,1,1]" > out.log 2>&1
status=$?
((status != 0 && status != 124)) || fail "a rank died at start: exit code $status"

# The file of one rank is another one's: a key that is in no plan would train on silently.
sed 's/^lr = .*/lr = 1e-4/' input.toml > stale.toml
cmp -s input.toml stale.toml && fail "the two inputs are the same"
cat > stale.sh <<'SH'
#!/bin/sh
name=input.toml
[ "${OMPI_COMM_WORLD_RANK:-0}" = 1 ] && name=stale.toml
program=$1
shift
exec "$program" "$name" "$@"
SH
chmod +x stale.sh
timeout 60 mpirun -n 2 --oversubscribe ./stale.sh "$T3D_BIN" -d stale > out.log 2>&1
status=$?
expect_status 78
expect_text "is not that of rank 0"
[[ ! -e stale ]] || fail "a run with two inputs made its folder"
