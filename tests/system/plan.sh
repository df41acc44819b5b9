# plan on a cluster's file: nodes, shapes, deadlines, budgets; what it writes a run takes; the prediction stands beside the
# measured steps; what cannot be is answered.
. "$T3D_SOURCE/tests/support/job.sh"
make_plan_input
run 1 calibrate --preset h100,ib-ndr -o cluster.toml
expect_status 0
sed -i 's/^nodes = 1 .*/nodes = 16/; 0,/^price_per_node_hour = 0/s//price_per_node_hour = 30/' cluster.toml
run 1 plan input.toml --cluster cluster.toml -o out
expect_status 0
grep -q '^\* .*h100' screen.log && grep -q "where the chosen plan's step goes" screen.log || fail "the table"
expect_text "prices 10 % higher .*cost +10.0 %"
expect_narrow screen.log
grep -q '^\* .* [0-9]\{1,3\}\(,[0-9]\{3\}\)\{1,\} ' screen.log || fail "large numbers without commas"
# What was guessed comes first; a chip without bf16 is not taken to be as fast as with fp16.
head -n 1 screen.log | grep -q "data-sheet guess.*h100" || fail "the first line hides the data sheets"
expect_text "^not measured: storage"
run 1 calibrate --preset v100-32g,ib-edr -o v100.toml
for format in bf16 fp16 fp32; do
  run 1 plan input.toml --cluster v100.toml --json --set precision.compute=\"$format\"
  expect_status 0
  cp screen.log v100-$format.json
done
python3 - <<'PY' || fail "bf16 on V100"
import json
matmul = {f: json.load(open(f"v100-{f}.json"))["options"][0]["terms"]["matmul"] for f in ("bf16", "fp16", "fp32")}
assert matmul["bf16"] > 1.5 * matmul["fp16"], matmul
assert any("v100" in line and "bf16" in line for line in json.load(open("v100-bf16.json"))["basis"])
PY
for file in input.toml plan.toml job.sbatch submit.sh job_plan.json plans.csv plans.svg plans.json; do
  [[ -s out/$file ]] || fail "no out/$file"
done
bash -n out/job.sbatch && bash -n out/submit.sh || fail "scripts"
# From another folder: sbatch is called, and ranks are started, where plan was.
mkdir bin elsewhere
printf '#!/bin/sh\npwd > "%s/submitted"\n' "$PWD" > bin/sbatch
printf '#!/bin/sh\npwd > "%s/started"; exit 1\n' "$PWD" > bin/srun
chmod +x bin/*
(cd elsewhere && PATH=$OLDPWD/bin:$PATH sh ../out/submit.sh && SLURM_JOB_ID=1 PATH=$OLDPWD/bin:$PATH bash ../out/job.sbatch > out.log 2>&1)
[[ $(cat submitted started) == "$PWD"$'\n'"$PWD" ]] || fail "the scripts start in $(cat submitted started)"
run 1 simulate out/job_plan.json --runs 50
expect_status 0

# What a person wrote is not written over.
cp cluster.toml priced.toml && cp input.toml own.toml
run 1 calibrate --preset a100-40g -o cluster.toml
expect_status 64
expect_text "cluster.toml is there already"
run 1 plan input.toml --cluster cluster.toml -o .
expect_status 64
expect_text "input.toml would be written over"
cmp cluster.toml priced.toml && cmp input.toml own.toml || fail "a file of a person was written over"
sed 's/^price_per_node_hour = 30/price_per_node_hour = 0/' cluster.toml > free.toml
run 1 plan input.toml --cluster free.toml -o new/folder
expect_status 0
grep -q "prices 10 %" screen.log && fail "prices that are not there are looked at"
[[ -s new/folder/plan.toml ]] || fail "no folder was made"
run 1 plan input.toml --cluster free.toml -o input.toml/out
expect_status 74
expect_text "input.toml is no folder"
run 1 plan input.toml --cluster cluster.toml --nodes 30
expect_status 78
expect_text "has 30 nodes"

# The best of all is no slower than the best of any number of nodes; the cheapest costs no more.
run 1 plan input.toml --cluster cluster.toml --json
expect_status 0
cp screen.log all.json
run 1 plan input.toml --cluster cluster.toml --json --objective cost
expect_status 0
python3 - all.json screen.log <<'PY' || fail "the choice"
import json, sys
time, cost = (json.load(open(path)) for path in sys.argv[1:3])
options = time["options"]
assert len(options) == 8, len(options)  # 1, 2, 3, 4, 6, 8, 12, 16
assert options[time["chosen"]]["hours"][1] == min(o["hours"][1] for o in options)
assert cost["options"][cost["chosen"]]["cost"][1] == min(o["cost"][1] for o in options)
for o in options:
    assert o["hours"][0] <= o["hours"][1] <= o["hours"][2] and sum(o["terms"].values()) > 0.999 * o["step_seconds"], o
    better = [p for p in options if p["hours"][1] <= o["hours"][1] and p["cost"][1] <= o["cost"][1] and p != o]
    assert o["front"] == (not better), o
PY
run 1 plan input.toml --cluster cluster.toml --deadline 0.1s
expect_status 78
expect_text "the soonest ends within"
run 1 plan input.toml --cluster cluster.toml --budget 0.0001
expect_status 78
expect_text "keeps to the budget of 0.0001 money; .*the cheapest costs"
# A budget has the unit of the prices, which may be written behind it.
sed 's/^price_per_node_hour = 30/&\ncurrency = "EUR"/; /^currency = ""/d' cluster.toml > euros.toml
for budget in 200 "200 EUR" "200eur"; do
  run 1 plan input.toml --cluster euros.toml --budget "$budget"
  expect_status 0
  tr '\n' ' ' < screen.log | grep -q "the soonest that stays within the budget of 200 EUR in 95 %" || fail "the unit of $budget"
done
run 1 plan input.toml --cluster euros.toml --budget "200 billing units"
expect_status 78
expect_text "--budget is in billing units, and the costs are in EUR"
run 1 plan input.toml --cluster euros.toml --budget EUR
expect_status 64
expect_text "no budget such as 200"
sed 's/^memory_bytes = .*/memory_bytes = 100000/' cluster.toml > tiny.toml
run 1 plan input.toml --cluster tiny.toml
expect_status 78
expect_text "MiB of 0"
sed 's/^nodes = 16/nodes = 0/; s/^price_per_node_hour = 30/price_per_node_hour = -1/; s/^hazard_shape = 1 /hazard_shape = 50 /' \
  cluster.toml > bad.toml
run 1 plan input.toml --cluster bad.toml
expect_status 78
expect_text "bad.toml:.*class.hazard_shape cannot be 50"
run 1 plan input.toml --cluster nowhere.toml
expect_status 66
sed '/^has_end/d; /^\[\[level\]\]/,$d' cluster.toml > unlinked.toml
run 1 plan input.toml --cluster unlinked.toml --nodes 2
expect_status 78
expect_text "\[\[level\]\]"

# Measured here, planned, run: with the plan's input, with its plan, and with the prediction beside the steps.
run 2 calibrate -o here.toml --seconds 3 --threads 1
expect_status 0
run 1 plan input.toml --cluster here.toml -o here --set mesh.cuboid=[1,1,2]
expect_status 0
run 2 here/input.toml -d by-input --set run.steps=8
expect_status 0
# The job asks for the memory that its node needs: a tenth and 256 MiB more than the ranks took, about.
asked=$(sed -n 's/^#SBATCH --mem=\([0-9]*\)M$/\1/p' here/job.sbatch)
took=$(sed -n 's/.*, \([0-9]*\)[.0-9]* MiB resident with program.*/\1/p' out.log)
((asked > 2 * took && asked < 3 * took + 300)) || fail "asked for $asked MiB, two ranks took $took each"
sed 's/^memory_bytes/asks_memory = "no"\n&/' here.toml > unasked.toml # where Slurm does not give out memory
run 1 plan input.toml --cluster unasked.toml -o unasked --set mesh.cuboid=[1,1,2]
expect_status 0
! grep -q -- --mem= unasked/job.sbatch || fail "asks for memory that Slurm does not give out"
[[ -d by-input/ckpt ]] || fail "the checkpoints of a planned input are not in its run's folder"
run 2 input.toml -d by-plan --set run.steps=8 --set 'mesh.plan="here/plan.toml"' --set 'hetero.cluster="here.toml"'
expect_status 0
expect_text "a step of this plan should take"
expect_text "hetero.cluster predicted"
same_losses by-input by-plan 0

# What its steps took over the tables goes into the file, once, and into the next plan. Where other tests run beside, factors
# may not explain the steps: then none are left, and the run says so.
if [[ ! -e by-plan/step_factors.json ]]; then
  grep -q "do not explain these steps" by-plan/run.log || fail "no factors, and no word of it"
else
run 1 plan input.toml --cluster here.toml --json --set mesh.cuboid=[1,1,2]
expect_status 0
cp screen.log raw.json
run 1 calibrate --from-run by-plan --add here.toml -o corrected.toml
expect_status 0
expect_text "^class .*: .*of 5 steps ("
run 1 plan input.toml --cluster corrected.toml --json --set mesh.cuboid=[1,1,2]
expect_status 0
python3 - raw.json screen.log by-plan/step_factors.json <<'PY' || fail "the factors are not in the plan"
import json, sys
raw, corrected = (json.load(open(path)) for path in sys.argv[1:3])
factors = json.load(open(sys.argv[3]))
assert "as its runs found it" in corrected["notes"][0], corrected["notes"]
def ratio(part):
    a, b = (sum(s for name, s in plan["options"][0]["terms"].items() if part in name) for plan in (raw, corrected))
    return b / a
used = {name: value if error <= 0.25 * min(1, value) else 1 for name in ("compute", "inside") for value, error in [factors[name]]}
assert abs(ratio("matmul") / used["compute"] - 1) < 1e-9 and abs(ratio("inside") / used["inside"] - 1) < 1e-9, factors
PY
run 1 calibrate --from-run by-plan --add corrected.toml
expect_status 78
expect_text "is in corrected.toml already"
run 1 calibrate --from-run by-input --add here.toml
expect_status 66
run 1 calibrate --from-run by-plan --add cluster.toml
expect_status 78
expect_text 'has no class'
sed 's/^calibrated_time = .*/calibrated_time = "2020-01-01T00:00:00Z"/' here.toml > older.toml
run 1 calibrate --from-run by-plan --add older.toml
expect_status 78
expect_text "it says nothing about them"
run 1 calibrate --from-run by-plan
expect_status 64
fi

# Ranks' times of a step in five alone: steps of which nobody knows what was computed say nothing of computing.
run 2 input.toml -d by-fifth --set run.steps=22 --set balance.every=5 --set 'mesh.plan="here/plan.toml"' --set 'hetero.cluster="here.toml"'
expect_status 0
grep -q 'computing took 0\.[012]' out.log && fail "computing is said to take no time"

[[ $(grep -c '"predicted_seconds"' by-plan/log.jsonl) == 8 ]] || fail "no prediction in log.jsonl"
cmp <(grep -v transport by-plan/plan.toml) <(grep -v transport here/plan.toml) || fail "another plan"
run 1 input.toml -d other --set run.steps=1 --set 'mesh.plan="here/plan.toml"'
expect_status 78
expect_text "a plan for 2 ranks"
run 2 input.toml -d other --set run.steps=1 --set 'mesh.plan="here/plan.toml"' --set model.layers=3
expect_status 78
for file in nowhere.toml cluster.toml; do
  run 2 input.toml -d other-$file --set run.steps=1 --set "hetero.cluster=\"$file\""
  expect_status 0
  expect_text "no prediction of steps"
done
