# The newest checkpoint turns out damaged while it is read, and the one before it was written under another
# plan: the run goes on from that one under that one's own plan, as if the newest had never been.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 20000
make_input
common=(input.toml --set schedule.kind=constant)
run 4 "${common[@]}" -d direct --set run.steps=5 --set "mesh.cuboid=[1,2,2]"
expect_status 0
cp -r direct both
run 4 "${common[@]}" -d both --set run.steps=8 --set mesh.replicas=2 --set "mesh.cuboid=[2,1,1]" \
  --set aggregate.method=adasum --set aggregate.placement=post
expect_status 0
file=$(ls both/ckpt/step-00000008/node-00000.*)
size=$(stat -c %s "$file")
dd if=/dev/zero of="$file" bs=1000 seek=1 count=$((size / 1000 - 1)) conv=notrunc status=none
for dir in direct both; do
  run 4 "${common[@]}" -d $dir --set run.steps=12
  expect_status 0
  expect_text "resumed from $dir/ckpt/step-00000005 at step 5"
  ! grep -q "starts at 0" out.log || fail "$dir: state is lost"
done
expect_text "passing over checkpoint both/ckpt/step-00000008: .* is damaged"
cmp direct/plan.toml both/plan.toml || fail "not the plan of the older checkpoint"
same_losses direct both 0
