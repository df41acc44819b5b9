# A run that goes on with other state (mean, then adasum on local updates): said, and begun at 0. And a
# replica without samples, which evaluates all the same.
# rotates
. "$T3D_SOURCE/tests/support/job.sh"
make_text 20000
make_input
common=(input.toml --set mesh.replicas=2 --set schedule.kind=constant)
run 2 "${common[@]}" -d other --set run.steps=5
expect_status 0
run 2 "${common[@]}" -d other --set run.steps=8 --set aggregate.method=adasum \
  --set aggregate.placement=post
expect_status 0
expect_text "the optimizer's state starts at 0"
# Back, and on without a key for it: as before, with all its state.
run 2 "${common[@]}" -d other --set run.steps=10 --set aggregate.method=mean
expect_status 0
expect_text "the optimizer's state starts at 0"
run 2 "${common[@]}" -d other --set run.steps=12
expect_status 0
grep -q "starts at 0" out.log && fail "a run that goes on as before says that its state is lost"
# A key beats a plan that was kept without it.
run 2 "${common[@]}" -d other --set run.steps=13 --set aggregate.method=adasum \
  --set aggregate.placement=post
expect_status 0
run 2 "${common[@]}" -d other --set run.steps=14
expect_status 0
expect_text "resumed"
grep -q 'method = "adasum"' other/plan.toml || fail "the plan was not kept"
run 2 "${common[@]}" -d other --set run.steps=15 --set aggregate.method=mean
expect_status 0
grep -q 'method = "mean"' other/plan.toml || fail "an explicit key did not beat the plan"

# What a run keeps of its plan stands in resolved.toml; on other ranks it aggregates as before.
run 2 input.toml -d kept --set run.steps=2 --set mesh.replicas=2 --set batch.recompute=block \
  --set aggregate.method=adasum --set aggregate.algorithm=flat
expect_status 0
run 2 input.toml -d kept --set run.steps=4
expect_status 0
for line in 'replicas = 2 ' 'recompute = "block" ' 'method = "adasum" ' 'algorithm = "flat" '; do
  grep -q "^$line" kept/resolved.toml || fail "resolved.toml has no $line"
done
run 4 input.toml -d kept --set run.steps=6 --set mesh.replicas=2
expect_status 0
for line in 'ranks = 4' 'recompute = "none"' 'aggregate.method = "adasum"' 'aggregate.algorithm = "flat"'; do
  grep -q "^$line" kept/plan.toml || fail "plan.toml has no $line"
done

for shares in "[0,1]" "[1,0]"; do
  run 2 "${common[@]}" -d shares --set run.steps=2 --set "batch.shares=$shares" \
    --set 'data.valid=["text.txt"]' --set eval.every_steps=1 --set eval.batches=2
  expect_status 0
  expect_text "validation loss"
  rm -rf shares
done

# The noise that adasum has measured: of other groups it means something else; of another reference batch
# it is the same in another unit.
adasum=("${common[@]}" --set aggregate.method=adasum --set batch.micro=2)
run 2 "${adasum[@]}" -d noise --set run.steps=6 --set checkpoint.every_steps=3 --set aggregate.reference_batch=2
expect_status 0
cp -r noise unit
run 2 "${adasum[@]}" -d unit --set run.steps=9 --set aggregate.reference_batch=1
expect_status 0
expect_text "resumed"
! grep -q "starts at 0" out.log || fail "the noise is lost with another reference batch"
run 2 "${adasum[@]}" -d noise --set run.steps=8 --set aggregate.per=model
expect_status 0
expect_text "aggregate/noise starts at 0"
run 2 "${adasum[@]}" -d noise --set run.steps=10
expect_status 0
! grep -q "starts at 0" out.log || fail "a run that goes on as before says that its noise is lost"
