# plan and simulate without any rank: what jobs ask for, what counts in the choice, what the file's keys do.
. "$T3D_SOURCE/tests/support/job.sh"
make_plan_input

# Two classes: a component of the job for each, with its own number of ranks and all its features; one step over both.
run 1 calibrate --preset h100,a100-40g,ib-ndr -o mixed.toml
expect_status 0
[[ $(sed -n 's/^nics_per_node = \([248]\).*/\1/p' mixed.toml | sort | xargs) == "4 8" ]] || fail "adapters of the data sheets"
sed -i 's/^name = "h100".*/name = "h100"\nfeatures = ["hopper", "ib"]\nnode_list = "h1"\npartition = "gpu"/
  s/^name = "a100-40g".*/name = "a100-40g"\nfeatures = ["ib"]\nnode_list = "a1"\npartition = "gpu"/' mixed.toml
run 1 plan input.toml --cluster mixed.toml --nodes 2 -o mixed
expect_status 0
expect_text '^\* 1 x h100 + 1 x a100-40g'
bash -n mixed/job.sbatch && sh -n mixed/submit.sh || fail "scripts of mixed classes"
grep '^#SBATCH -*\(hetjob\|ntasks\|gpus\|constr\|excl.*=\)' mixed/job.sbatch > asked.txt
cmp asked.txt - <<'ASKED' || fail "asked for: $(cat asked.txt)"
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-task=1
#SBATCH --constraint='hopper&ib'
#SBATCH hetjob
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-task=1
#SBATCH --constraint=ib
#SBATCH --exclude=h1
ASKED
grep -q '^tasks=--het-group=0,1$' mixed/job.sbatch || fail "a step for one component only"

# What counts: a deadline leaves the cost to be small, a budget the time, pareto both. JSON says what could not be kept.
run 1 calibrate --preset h100,ib-ndr -o cluster.toml
expect_status 0
sed -i 's/^nodes = 1 .*may ask.*/nodes = 16/; 0,/^price_per_node_hour = 0 /s//price_per_node_hour = 30 /' cluster.toml
large=(--set model.layers=8 --set model.hidden=4096 --set model.heads=32 --set model.context=512)
choice() { run 1 plan input.toml --cluster cluster.toml "${large[@]}" --json "$@"; expect_status 0; cp screen.log chosen.json; }
choice; cp chosen.json soonest.json
choice --deadline 2d; cp chosen.json deadline.json
choice --budget 1000000; cp chosen.json budget.json
choice --objective pareto; cp chosen.json pareto.json
python3 - soonest.json deadline.json budget.json pareto.json <<'PY' || fail "the choice"
import json, sys
def value(path, of):
    plan = json.load(open(path))
    assert {"options", "searched", "wish", "notes"} <= plan.keys(), plan.keys()
    assert all("left_out" in s for s in plan["searched"]) and any(s["left_out"] for s in plan["searched"])
    options = plan["options"]
    return of(options[plan["chosen"]]), min(of(o) for o in options)
hours, cost = (lambda o: o["hours"][1]), (lambda o: o["cost"][1])
for path, of in zip(sys.argv[1:5], (hours, cost, hours, lambda o: hours(o) * cost(o))):
    assert value(path, of)[0] == value(path, of)[1], path
assert value(sys.argv[2], hours)[0] > value(sys.argv[2], hours)[1]  # else this says nothing
PY
run 1 plan input.toml --cluster cluster.toml "${large[@]}" --objective pareto
(($(grep -c '^[ *+] [0-9]* x h100 ' screen.log) == $(grep -c '^[*+] [0-9]* x h100 ' screen.log))) || fail "not the front alone"
expect_text "chosen: the least product of hours and cost"
run 1 plan input.toml --cluster cluster.toml --deadline 0.1s --json
expect_status 78
python3 -c 'import json; p = json.load(open("screen.log")); u = p["unmet"]; assert p["chosen"] is None and "deadline" in u["why"] and \
  p["options"][u["soonest"]]["hours"][2] == min(o["hours"][2] for o in p["options"])' || fail "what could not be kept"
# Where nothing is left out, nothing is said of it.
run 1 plan input.toml --cluster cluster.toml --nodes 1 --set mesh.cuboid=[1,1,1]
expect_status 0
grep -q "what was left out" screen.log && fail "an empty heading"
sed 's/^preemptible = false/preemptible = true/' cluster.toml > taken.toml
run 1 plan input.toml --cluster taken.toml --nodes 1
expect_text "note: h100 may be preempted and has no hazard_scale_hours"
# Links of switches that carry a third: slower between nodes.
sed 's/^oversubscription = 1/oversubscription = 3/' cluster.toml > shared.toml
for file in cluster shared; do run 1 plan input.toml --cluster $file.toml "${large[@]}" --nodes 4 --json --set mesh.cuboid=[8,4,1] --set mesh.replicas=1 --set batch.micro=0 && cp screen.log $file.json; done
python3 -c 'import json; a, b = (json.load(open(f + ".json"))["options"][0]["step_seconds"] for f in ("cluster", "shared"))
assert b > 1.2 * a, (a, b)' || fail "oversubscription"

# A cut file is refused, one that a person wrote is not; limits below a minute are none.
head -n -3 cluster.toml > cut.toml
run 1 plan input.toml --cluster cut.toml
expect_status 78
expect_text "the file was cut"
sed '/^has_end = true/d; /^\[end\]/d' cluster.toml > old.toml
run 1 plan input.toml --cluster old.toml --nodes 1
expect_status 0
expect_text "note: old.toml has no mark at its end"
(cat old.toml; printf '[[partition]]\nname = "p"\ntime_limit_seconds = 30\n') > short.toml
run 1 plan input.toml --cluster short.toml --nodes 1
expect_status 78
expect_text "partition.time_limit_seconds cannot be 30; write 0 (none), or from 60"

# What remains of a run is planned.
run 1 input.toml -d before --set run.steps=3 --set debug.threads=1
expect_status 0
run 1 plan input.toml --cluster cluster.toml --nodes 1 -o rest --set run.dir=before
expect_status 0
expect_text "note: goes on from before/ckpt/step-00000003: 1997 of 2000 steps remain"
expect_text "^1,997 steps of 32 sequences"
grep -q '"samples": 63904' rest/job_plan.json || fail "the job plan has other samples"
run 1 plan input.toml --cluster cluster.toml --nodes 1 --from before --set run.steps=3
expect_status 78
expect_text "has done all 3 steps"
run 1 plan input.toml --cluster cluster.toml --from nowhere
expect_status 66
