# Adasum in real jobs: what the log and the end table say of it; asked to stop in the middle and
# continued to the bit, with the measured noise and, placed "post", optimizers of each replica;
# continued on other numbers of replicas with the same reference batch.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 20000
make_input
adasum=(input.toml --set aggregate.method=adasum --set aggregate.reference_batch=1
  --set batch.micro=2 --set schedule.kind=constant)
three=("${adasum[@]}" --set mesh.replicas=3 --set "mesh.cuboid=[1,1,1]")
long=(--set run.steps=200 --set checkpoint.every_steps=50 --set log.every_steps=100)

stop_after() { # DIR STEP args...: asks the job to stop once it has done the step
  local dir=$1 step=$2
  shift 2
  mpirun -n 3 --oversubscribe "$T3D_BIN" "$@" -d "$dir" > out.log 2>&1 &
  job=$!
  for _ in $(seq 1200); do
    grep -q "\"step\":$step," "$dir/log.jsonl" 2> /dev/null && break
    kill -0 $job 2> /dev/null || fail "the job ended before step $step"
    sleep 0.02
  done
  for rank in $(pgrep -P $job); do kill -TERM "$rank"; done
  wait $job
  status=$?
  expect_status 75
  expect_text "asked to stop by a signal"
}

for placement in gain post; do
  run 3 "${three[@]}" "${long[@]}" -d "whole-$placement" --set aggregate.placement=$placement
  expect_status 0
  grep -q differ out.log && fail "$placement: bytes differ from the formula"
  expect_text "noise scale [0-9.]*[kMG]* sequences"
  stop_after "half-$placement" 13 "${three[@]}" "${long[@]}" --set aggregate.placement=$placement
  run 3 "${three[@]}" "${long[@]}" -d "half-$placement" --set aggregate.placement=$placement
  expect_status 0
  expect_text "resumed from half-$placement/ckpt/step-"
  same_losses "whole-$placement" "half-$placement" 0
done

# Every step says what aggregation knows.
python3 - whole-gain/log.jsonl <<'PY' || fail "the log lacks what adasum knows"
import json, sys
steps = [json.loads(line) for line in open(sys.argv[1])]
assert len(steps) == 200
for step in steps:
    # At most the samples over the reference batch; not the mean, else nothing was aggregated.
    assert 1 <= step["adasum_gain"] <= 8 * (1 + 1e-6), step
    assert step["left_out"] == [], step
known = [step["noise_scale_sequences"] for step in steps if step["noise_scale_sequences"] is not None]
assert len(known) > 150 and min(known) > 0
assert max(step["adasum_gain"] for step in steps) > 1.5
PY

# Other numbers of replicas go on from there: the reference batch is the same, the learning rate too.
# A leaf counts as a replica, so one rank of three leaves goes on as three replicas would have.
more=(--set aggregate.placement=post --set run.steps=204)
run 1 "${adasum[@]}" "${more[@]}" -d half-post --set mesh.replicas=1 --set aggregate.leaves=3
expect_status 0
expect_text "at step 200"
run 3 "${three[@]}" "${more[@]}" -d whole-post
expect_status 0
same_losses whole-post half-post 1e-4
run 4 "${adasum[@]}" "${more[@]}" -d half-post --set run.steps=208 --set mesh.replicas=4 \
  --set "mesh.cuboid=[1,1,1]"
expect_status 0
expect_text "at step 204"
! grep -q differ out.log || fail "4 replicas: bytes differ from the formula"
