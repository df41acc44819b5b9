# The input leaves the shape open. One rank becomes much slower in the middle: the run takes another shape, says
# why, keeps its losses, and continues with the new shape. Ranks share one core, so that CPU time counts.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 60000
make_input
use_one_core
common=(input.toml --set model.hidden=64 --set model.context=16 --set model.dropout=0 --set batch.micro=0
  --set batch.sequences=2 --set precision.compute=fp64 --set optimizer.lr=3e-4 --set log.every_steps=10
  --set schedule.kind=constant)
slow=(--set "emulate.schedule=[\"4:3:20\"]")

run 4 "${common[@]}" "${slow[@]}" -d off --set run.steps=50
expect_status 0
[[ $(ls off/plans) == 0.toml ]] || fail "off has several plans"
was=$(grep -o "mesh [0-9x ]*" off/run.log | head -n 1)

run 4 "${common[@]}" "${slow[@]}" -d model --set run.steps=45 --set balance.kind=model
expect_status 0
grep -q "^plan .*: $was -> .*state moved in .* a step predicted instead of .*; lost so far" model/run.log || \
  fail "no change of shape: $(grep ^plan model/run.log)"

run 4 "${common[@]}" "${slow[@]}" -d model --set run.steps=50 --set balance.kind=model
expect_status 0
expect_text "resumed from model/ckpt/step-00000045"
[[ $(grep -o "ranks, mesh [0-9x ]*" model/run.log | tail -n 1) != "ranks, $was" ]] || fail "the continued run has the old shape"
same_losses off model 1e-9

# A shape that the user wrote stays.
run 4 "${common[@]}" "${slow[@]}" -d written --set run.steps=45 --set balance.kind=model --set "mesh.cuboid=[1,2,2]"
expect_status 0
[[ $(grep -c "^plan .*: mesh 1 x 2 x 2 -> " written/run.log) == $(grep -c "^plan .* -> 1 x 2 x 2," written/run.log) ]] ||
  fail "a written shape was changed"
