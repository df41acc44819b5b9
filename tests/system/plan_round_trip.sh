# What plan promises is what simulate finds for the job that it wrote, and what plan finds again for the input that it wrote.
. "$T3D_SOURCE/tests/support/job.sh"
make_plan_input
run 1 calibrate --preset h100,ib-ndr -o cluster.toml
expect_status 0
sed -i '0,/^nodes = 1 .*/s//nodes = 2/; 0,/^hazard_shape = .*/s//hazard_shape = 1/; 0,/^hazard_scale_hours = .*/s//hazard_scale_hours = 3/
  0,/^return_hours = .*/s//return_hours = 0.05/' cluster.toml
grep -q '^hazard_scale_hours = 3' cluster.toml || fail "no hazard in the cluster's file"
steps=(--set run.steps=100000000)
run 1 plan input.toml --cluster cluster.toml "${steps[@]}" --json
expect_status 0
deadline=$(python3 -c '
import json
plan = json.load(open("screen.log"))
print("%.3fh" % (1.1 * plan["options"][plan["chosen"]]["hours"][1]))')
run 1 plan input.toml --cluster cluster.toml "${steps[@]}" --deadline "$deadline" --risk 0.5 -o out
expect_status 0
run 1 simulate out/job_plan.json --deadline "$deadline" --runs 400 --json
expect_status 0
cp screen.log simulated.json
# The written input says all: mesh, micro-batch, when checkpoints are written.
nodes=$(python3 -c '
import json
plan = json.load(open("out/plans.json"))
print(sum(plan["options"][plan["chosen"]]["nodes"].values()))')
run 1 plan out/input.toml --cluster cluster.toml --nodes "$nodes" --deadline "$deadline" --risk 0.5 -o again
expect_status 0
python3 - <<'PY' || fail "what was promised is not what was written"
import json
import tomllib
def chosen(folder):
    plan = json.load(open(folder + "/plans.json"))
    return plan["options"][plan["chosen"]]
promised, again = chosen("out"), chosen("again")
assert 0.5 <= promised["in_time"] < 1, promised["in_time"]
assert json.load(open("simulated.json"))["own"]["deadline_probability"] == promised["in_time"]
assert abs(again["in_time"] - promised["in_time"]) < 0.03, (again["in_time"], promised["in_time"])
job = json.load(open("out/job_plan.json"))
minutes = tomllib.load(open("out/input.toml", "rb"))["checkpoint"]["every_minutes"]
assert abs(60 * minutes - job["policy"]["interval_seconds"]) < 1e-6 and 1 <= minutes < 30, minutes
assert job["step_slower"] > 0 and job["step_error"] == 0, job
PY
# Hours have a unit.
run 1 plan input.toml --cluster cluster.toml --deadline 40
expect_status 64
