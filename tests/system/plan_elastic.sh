# plan --elastic: a measured noise scale becomes phases of growing nodes and batches that cost less to the same loss; each
# pauses at its last step and the next goes on; what is not known is said, with how to get it.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 20000
make_input
run 2 input.toml -d pilot --set mesh.replicas=2 --set 'mesh.cuboid=[1,1,1]' --set run.steps=60 --set aggregate.method=mean
expect_status 0
run 1 calibrate --preset a100-40g,ib-ndr -o cluster.toml
expect_status 0
sed -i 's/^nodes = 1 .*/nodes = 16/; 0,/^price_per_node_hour = 0/s//price_per_node_hour = 30/' cluster.toml
# A tiny model that takes as long as a large one: operators a billion times slower than the data sheet's.
python3 - cluster.toml <<'PY' || fail "cluster.toml"
import re, sys
text = open(sys.argv[1]).read()
before, operators = text.split("\n[[operator]]", 1)
slower = lambda line: re.sub(r"[0-9][0-9.e+-]*", lambda number: repr(1e9 * float(number[0])), line[0])
open(sys.argv[1], "w").write(before + "\n[[operator]]" + re.sub(r"(?m)^terms = .*?\]", slower, operators))
PY
plan=(plan input.toml --cluster cluster.toml --set run.steps=40 --set aggregate.method=mean)

run 1 "${plan[@]}" --elastic
expect_status 78
expect_text "--noise-from RUN takes it from the folder of a run with two replicas or more"
run 1 "${plan[@]}" --elastic --noise-from nowhere
expect_status 66
run 1 input.toml -d alone --set run.steps=2 --set mesh.replicas=1
run 1 "${plan[@]}" --elastic --noise-from alone
expect_status 78
expect_text "alone/log.jsonl has no noise scale"
for wrong in 500 500,x -3,0.5 500,0.5,1; do
  run 1 "${plan[@]}" --elastic --noise "$wrong"
  expect_status 64
  expect_text "as in 500,0.5"
done
run 1 "${plan[@]}" --noise 500,0.5
expect_status 64
run 1 "${plan[@]}" --elastic --noise 500,0.5 --most-batch 2
expect_status 64
expect_text "is below batch.sequences"

# Under mean the batch stays, and with it the size; what a run has measured is taken.
run 1 "${plan[@]}" --elastic --noise-from pilot
expect_status 0
tr -s '\n ' ' ' < screen.log | grep -q "from pilot: 60 steps up to step 60, of 8 sequences;" && grep -q "one size is the best" screen.log || fail "the pilot's noise"
# Planned for another context: the same tokens are other sequences.
noise_at_end() { sed -n 's/.*"at_end": \([0-9.e+-]*\),.*/\1/p' screen.log; }
run 1 "${plan[@]}" --elastic --noise-from pilot --json
noise=$(noise_at_end)
run 1 "${plan[@]}" --elastic --noise-from pilot --set model.context=16 --json
expect_text "of 16 sequences of 16 tokens (its own have 32)"
awk -v a="$noise" -v b="$(noise_at_end)" 'BEGIN { exit !(a > 0 && b / a > 1.999 && b / a < 2.001) }' || fail "noise scale $noise of context 32"

# A law by hand, and a batch that may grow: phases, each with more than the one before; sooner than one size for no more.
run 1 "${plan[@]}" --elastic --noise 200,1.5 --most-batch 64 -o out --json
expect_status 0
cp screen.log elastic.json
cmp elastic.json out/elastic.json || fail "elastic.json"
python3 - elastic.json <<'PY' || fail "the schedule"
import json, sys
plan = json.load(open(sys.argv[1]))
phases = plan["phases"]
assert len(phases) >= 2, phases
assert all(a["batch"] < b["batch"] for a, b in zip(phases, phases[1:])) and phases[0]["batch"] == 8, phases
assert phases[0]["first_step"] == 1 and all(a["last_step"] + 1 == b["first_step"] for a, b in zip(phases, phases[1:]))
whole, one, usual = plan["schedule"], plan["one_size"], plan["without_elastic"]
assert whole["cost"] <= usual["cost"] * (1 + 1e-9) and whole["hours"] < 0.98 * one["hours"] and one["hours"] <= usual["hours"], plan
assert abs(plan["work_per_cost"] - usual["cost"] / whole["cost"]) < 1e-9
assert abs(sum(p["cost"] for p in phases) / whole["cost"] - 1) < 1e-9
last = phases[-1]["last_step"]
assert last < usual["steps"] and plan["noise"]["exponent"] == 1.5
print(len(phases), last)
PY
read -r phases last < <(python3 -c 'import json; p = json.load(open("elastic.json"))["phases"]; print(len(p), p[-1]["last_step"])')
for ((n = 1; n <= phases; ++n)); do
  [[ -s out/phase-$n.toml ]] && bash -n "out/phase-$n.sbatch" || fail "phase $n"
done
sh -n out/submit.sh || fail "submit.sh"
for read in phase-2.toml phase-1.sbatch submit.sh; do
  cp input.toml "out/$read"
  run 1 plan "out/$read" --cluster cluster.toml --elastic --noise 200,1.5 -o out
  expect_status 64
  expect_text "out/$read would be written over"
done
run 1 "${plan[@]}" --elastic --noise 200,1.5 --most-batch 64 -o out --json

# The phases as jobs, one after another: here submit.sh's sbatch is a script that starts the ranks of the phase.
mkdir bin
cat > bin/sbatch <<'SH'
#!/bin/bash
{ printf '[%s]' "$@"; echo " after=${T3D_AFTER-} ${SLURM_RESTART_COUNT-} $SLURM_CONF"; } >> submitted
SH
printf '#!/bin/sh\ncat queue 2> /dev/null\n' > bin/squeue # tests/slurm/phases.sh has the real one
chmod +x bin/*
mkdir elsewhere
submit() { (cd elsewhere && SLURM_CONF=conf PATH=$OLDPWD/bin:$PATH sh ../out/submit.sh "$@" 2> ../told); }
last_is() { [[ $(tail -n 1 submitted) == "$1" ]] || fail "not $1: $(tail -n 1 submitted)"; }
script() { echo "[$PWD/out/phase-$1.sbatch]"; }
submit
last_is "$(script 1) after=  conf"
# What is queued is submitted no second time; a job that asks is told that all is well.
echo "17 (PENDING) $PWD/out/phase-1.sbatch" > queue
submit && fail "phase 1 twice"
grep -q "phase 1 is job 17 (PENDING) already: not submitted again" told || fail "not told: $(cat told)"
T3D_AFTER=16 submit || fail "a job that asks for what is there has failed"
[[ $(wc -l < submitted) == 1 ]] || fail "submitted: $(cat submitted)"
echo "17 (COMPLETING) $PWD/out/phase-1.sbatch
18 (RUNNING) /elsewhere$PWD/out/phase-1.sbatch" > queue
submit
[[ $(wc -l < submitted) == 2 ]] || fail "not submitted: $(cat told)"
rm queue
options=(-A physics --comment "Anna's \"run\", \$HOME  *" '')
kept=$(printf '[%s]' "${options[@]}")
submit "${options[@]}"
last_is "$kept$(script 1) after=  conf"
submit -A physics --comment "one line
and another"
last_is "and another]$(script 1) after=  conf"
submit "${options[@]}"

# As a job's last act: its own numbers stay with it. Where its checkpoint is not seen, there is no other job.
T3D_AFTER=17 SLURM_RESTART_COUNT=2 submit
last_is "$kept[--dependency=afterany:17]$(script 1) after=  conf"
T3D_AFTER=17 T3D_PAUSED=$PWD/out/phase-1.toml submit && fail "phase 1 once more"
grep -q "phase 1 has paused, but $PWD has no checkpoint of it in runs/t/ckpt" told || fail "not told: $(cat told)"
alone=(--set mesh.replicas=1 --set 'mesh.cuboid=[1,1,1]' --set debug.threads=1)
for ((n = 1; n <= phases; ++n)); do
  run 1 "out/phase-$n.toml" "${alone[@]}"
  step=$(sed -n 's/.*"last_step": \([0-9]*\).*/\1/p' elastic.json | sed -n "${n}p")
  if ((n < phases)); then
    expect_status 75
    expect_text "paused at step $step (run.pause_at = $step)"
    grep -q '"paused": true' runs/t/exit.json && grep -q '"continue": true' runs/t/exit.json || fail "exit.json"
    # Started once more in the same size, it has nothing to do and says so.
    run 1 "out/phase-$n.toml" "${alone[@]}"
    expect_status 75
    expect_text "paused at step $step"
    T3D_AFTER=17 T3D_PAUSED=$PWD/out/phase-$n.toml submit || fail "after phase $n: $(cat told)"
    last_is "$kept[--dependency=afterany:17]$(script $((n + 1))) after=  conf"
    # Checkpoints of a later lineage have its number in their names; the newest lineage counts.
    saved=runs/t/ckpt/step-$(printf %08d "$step")
    mv "$saved" "$saved.lineage-9"
    submit
    last_is "$kept$(script $((n + 1))) after=  conf"
    mkdir runs/t/ckpt/step-00000001.lineage-10
    submit
    last_is "$kept$(script 1) after=  conf"
    rmdir runs/t/ckpt/step-00000001.lineage-10
    mv "$saved.lineage-9" "$saved"
  else
    expect_status 0
    expect_text "all steps done"
    grep -q '"paused": false' runs/t/exit.json || fail "exit.json"
  fi
done
[[ $(tail -n 1 runs/t/log.jsonl) == "{\"step\":$last,"* ]] || fail "the last step is not $last"
