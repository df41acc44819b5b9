# plan on a slow network: replicas sum inside the nodes and cuboids reach over the network, another order of axes than the
# usual one. A run takes it by the input and by the plan; its losses are those of one rank, its bytes those of the formula.
. "$T3D_SOURCE/tests/support/job.sh"
make_plan_input
run 1 calibrate --preset h100,ib-ndr -o cluster.toml
expect_status 0
sed -i 's/^ranks_per_node = .*/ranks_per_node = 2/; 0,/^nodes = 1 /s//nodes = 2 /
  /^name = "network"/,/^\[\[/s/^beta_seconds_per_byte = .*/beta_seconds_per_byte = 1e-6/' cluster.toml
few=(--set batch.sequences=4)
shape=(--nodes 2 --set mesh.cuboid=[1,2,1] --set mesh.replicas=2)
run 1 plan input.toml --cluster cluster.toml "${few[@]}" "${shape[@]}" -o out
expect_status 0
expect_text '^\* 2 x h100 *2 x (1 x 2 x 1), d j '
expect_text 'along d j, innermost first .*; in the usual order a step takes [0-9.]*'
grep -q '^# place: ranks are numbered along d j' out/plan.toml && grep -q '^place = \[0, 2, 1, 3\]' out/plan.toml || fail "no order in plan.toml"
python3 - out/plans.json <<'PY' || fail "the order"
import json, sys
plan = json.load(open(sys.argv[1]))
option = plan["options"][plan["chosen"]]
assert option["order"] == ["d", "j"] and option["usual_order_step_seconds"] > 1.2 * option["step_seconds"], option
PY
run 1 plan input.toml --cluster cluster.toml "${shape[@]}" --set batch.sequences=256 --json
expect_status 0
grep -q usual_order screen.log && fail "another order where it is no better"
run 4 out/input.toml -d by-input --set run.steps=5
expect_status 0
grep -q differ out.log && fail "bytes differ from the formula"
run 4 input.toml -d by-plan --set run.steps=5 "${few[@]}" --set mesh.replicas=2 --set 'mesh.plan="out/plan.toml"'
expect_status 0
run 1 input.toml -d by-one --set run.steps=5 "${few[@]}"
expect_status 0
same_losses by-one by-input 1e-4
same_losses by-input by-plan 0
for folder in by-input by-plan; do
  grep -q '^place = \[0, 2, 1, 3\]' $folder/plan.toml || fail "$folder has other places"
done
