# The noise scale under mean: in log.jsonl and the end table of two replicas or more with uneven shares, not of one;
# the same law as Adasum's, on the same gradients; a run of two lives has the losses of one.
# rotates
. "$T3D_SOURCE/tests/support/job.sh"
make_text 20000
make_input
mean=(input.toml --set aggregate.method=mean --set schedule.kind=constant --set optimizer.lr=1e-9
  --set batch.sequences=8 --set batch.micro=0 --set run.steps=60)
run 3 "${mean[@]}" -d three --set mesh.replicas=3 --set 'mesh.cuboid=[1,1,1]' --set batch.shares=[2,5,1]
expect_status 0
expect_text "noise scale [0-9.]*[kMG]* sequences"
! grep -q differ out.log || fail "bytes differ from the formula"
run 4 "${mean[@]}" -d four --set mesh.replicas=4 --set 'mesh.cuboid=[1,1,1]'
run 4 "${mean[@]}" -d flat --set mesh.replicas=4 --set 'mesh.cuboid=[1,1,1]' --set aggregate.method=adasum \
  --set aggregate.algorithm=flat --set aggregate.reference_batch=2
expect_status 0
run 2 "${mean[@]}" -d one --set mesh.replicas=1 --set run.steps=3
expect_status 0
! grep -q "noise scale" out.log || fail "one replica knows no noise"
! grep -q noise one/log.jsonl || fail "one replica knows no noise"

# With hardly a step of the weights all runs see the same gradients: signal and noise of the whole, whatever the shares.
python3 - three four flat <<'PY' || fail "the noise"
import json, sys
runs = {name: [json.loads(line) for line in open(name + "/log.jsonl")] for name in sys.argv[1:]}
sums = {name: [sum(step[key] for step in steps) for key in ("gradient_signal", "gradient_noise")] for name, steps in runs.items()}
for name, steps in runs.items():
    assert len(steps) == 60 and all("noise_scale_sequences" in step for step in steps), name
print(sums)
for at in 0, 1:  # every step of the same samples: four and flat to rounding, three as another estimate of the same
    assert abs(sums["four"][at] / sums["flat"][at] - 1) < 1e-3, sums
    assert abs(sums["three"][at] / sums["four"][at] - 1) < 0.1, sums
last = runs["four"][-1]["noise_scale_sequences"]
assert 0.8 < last / (sums["four"][1] / sums["four"][0]) < 1.25, (last, sums)
PY
