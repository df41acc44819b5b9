# Who asks to stop does not wait for an evaluation: signals and time limits break it off, no loss is
# made of a part of it, and the last one is made up for by the next life.
# rotates
. "$T3D_SOURCE/tests/support/job.sh"
make_text 2000000
for _ in 1 2 3 4 5 6; do cat text.txt; done > valid.txt
make_text 20000
make_input
# Some ten seconds each.
long=(input.toml --set "data.valid=valid.txt" --set eval.batches=1000000 --set "mesh.cuboid=[2,1,1]")
trap 'kill -KILL ${job:-} 2> /dev/null' EXIT
ended() { # DIR CODE STEP REASON
  python3 - "$@" <<'PY' || fail "exit.json of $1"
import json, sys
folder, code, step, reason = sys.argv[1:]
end = json.load(open(folder + "/exit.json"))
assert (end["code"], end["step"], end["checkpoint"]) == (int(code), int(step), int(step)) and reason in end["reason"], end
assert end["continue"] == (code == "75"), end
PY
}
seconds_since() { echo $((($(date +%s%N) - $1) / 1000000000)); }

# A time limit that comes while the losses of step 1 are computed.
start=$(date +%s%N)
run 2 "${long[@]}" -d limit --set eval.every_steps=1 --set run.hours=0.001
took=$(seconds_since "$start")
expect_status 75
expect_text "no validation after step 1: stopped because the time limit is near"
ended limit 75 1 "the time limit is near"
((took < 8)) || fail "3.6 s took $took s"
grep -q '"step":1,' limit/log.jsonl || fail "no line of step 1"
grep -q valid_loss limit/log.jsonl && fail "a validation loss of a part"
grep -q "differ" out.log && fail "bytes differ from the formula"

# A signal in the last one: nothing but the loss is missing, and the next life finds it.
mpirun -n 2 --oversubscribe "$T3D_BIN" "${long[@]}" -d last > out.log 2>&1 &
job=$!
for _ in $(seq 1000); do
  [[ -d last/ckpt/step-00000020 ]] && break
  sleep 0.02
done
sleep 0.5
start=$(date +%s%N)
kill -USR2 $job
wait $job
status=$?
took=$(seconds_since "$start")
expect_status 75
((took < 4)) || fail "$took s after the signal"
ended last 75 20 "all steps are done, the last validation is not"
grep -q '"step":20,' last/log.jsonl || fail "no line of step 20"
grep -q valid_loss last/log.jsonl && fail "a validation loss of a part"
grep -q "differ" out.log && fail "bytes differ from the formula"
run 2 "${long[@]}" -d last --set eval.batches=1 # the last one is of the whole text
expect_status 0
expect_text "^validation loss [0-9]"
ended last 0 20 "all steps done"
run 2 "${long[@]}" -d last
expect_status 0
expect_text "nothing is left to do"
grep -q "^validation" out.log && fail "a second time"
true
