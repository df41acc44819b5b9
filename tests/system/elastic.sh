# One run over lives of 4, 3, 4 and 2 ranks with the shape left open: the losses of a run that nobody disturbed,
# every sample exactly once, and a line that says what has changed. A shape that is written and does not fit is refused.
# rotates
. "$T3D_SOURCE/tests/support/job.sh"
make_text 20000
head -c $((160 * 32 + 1)) text.txt > epoch.txt # 160 samples of 32 tokens: 20 steps of 8
make_input
common=(input.toml --set 'data.train=["epoch.txt"]' --set schedule.kind=constant --set checkpoint.every_steps=3)
open=(--set mesh.replicas=auto --set mesh.cuboid=auto)

# lives DIR ARGUMENTS...: the second life loses a step, as one that is killed behind its checkpoint does
lives() {
  run 4 "${common[@]}" "${open[@]}" "${@:2}" -d "$1" --set run.steps=5
  expect_status 0
  run 3 "${common[@]}" "${open[@]}" "${@:2}" -d "$1" --set run.steps=10
  expect_status 0
  expect_text "resumed from $1/ckpt/step-00000005 at step 5"
  expect_text "^plan: ranks 4 -> 3, mesh 4 x 1 x 1 -> 1 x 3 x 1$"
  ! grep -q "^plan: replica" out.log || fail "the cuts of another shape are listed one by one"
  rm -r "$1/ckpt/step-00000010"
  run 4 "${common[@]}" "${open[@]}" "${@:2}" -d "$1" --set run.steps=15
  expect_status 0
  expect_text "resumed from $1/ckpt/step-00000009 at step 9"
  expect_text "^plan: ranks 3 -> 4, mesh 1 x 3 x 1 -> 4 x 1 x 1$"
  run 2 "${common[@]}" "${open[@]}" "${@:2}" -d "$1" --set run.steps=20
  expect_status 0
  expect_text "resumed from $1/ckpt/step-00000015 at step 15"
  expect_text "^plan: ranks 4 -> 2, mesh 4 x 1 x 1 -> 2 x 1 x 1$"
}
run 4 "${common[@]}" "${open[@]}" -d whole
expect_status 0
lives changed
same_losses whole changed 1e-4
# (But for the checkpoint that was removed.)
! grep '^warning' changed/run.log | grep -v 'is not there any more' || fail "a mean is the same on any ranks"

echo "every sample exactly once"
# With a learning rate of almost 0 a loss depends on the samples only.
still=(--set optimizer.lr=1e-12 --set model.dropout=0)
one_by_one=("${common[@]}" "${still[@]}" --set run.steps=160 --set batch.sequences=1 --set batch.micro=0
  --set checkpoint.every_steps=0 --set log.every_steps=1000)
for shuffle in true false; do
  run 1 "${one_by_one[@]}" -d samples-$shuffle --set data.shuffle=$shuffle
  expect_status 0
  losses samples-$shuffle > samples-$shuffle.txt
done
near() { # FILE FILE: losses in the last column
  paste "$1" "$2" | awk '{ d = $2 - $4; if (NF != 4 || d > 2e-6 * $2 || -d > 2e-6 * $2) { print; exit 1 } }'
}
near <(sort -g -k 2 samples-true.txt) <(sort -g -k 2 samples-false.txt) || fail "the order is no permutation of the samples"
lives still "${still[@]}"
losses still > still.txt
awk '{ sum += $2 } NR % 8 == 0 { print NR / 8, sum / 8; sum = 0 }' samples-true.txt > expected.txt
near expected.txt still.txt || fail "the lives read other samples"

echo "a shape that is written"
cp -r changed written
fixed=("${common[@]}" -d written --set run.steps=22)
run 3 "${fixed[@]}" --set "mesh.cuboid=[2,2,1]"
expect_status 78
expect_text 'mesh: 1 replica of 2 x 2 x 1 needs 4 ranks, and there are 3; start 4 ranks, .* or write mesh.cuboid = "auto"'
run 3 "${fixed[@]}" --set mesh.replicas=4 --set batch.micro=0
expect_status 78
expect_text 'mesh.replicas = 4 needs as many ranks, and there are 3; start 4 ranks, or write at most 3, or "auto"'
run 4 "${fixed[@]}" --set "mesh.cuboid=[2,2,1]"
expect_status 0
expect_text "^plan: ranks 2 -> 4, mesh 2 x 1 x 1 -> 2 x 2 x 1$"
expect_text "resumed from written/ckpt/step-00000020"

echo "adasum of another number of replicas is said to be another training"
adasum=("${common[@]}" --set aggregate.method=adasum --set aggregate.reference_batch=4)
warned='^warning: aggregate.method = "adasum" combines 1 gradient a step from here on, and combined 2: '
run 2 "${adasum[@]}" -d adasum --set mesh.replicas=2 --set run.steps=3
expect_status 0
cp -r adasum kept
run 3 "${adasum[@]}" -d adasum "${open[@]}" --set run.steps=6
expect_status 0
expect_text "$warned.*; mesh.replicas = 2 keeps their number"
run 3 "${adasum[@]}" -d kept --set mesh.replicas=2 --set run.steps=6
expect_status 0
expect_text "1 of 3 ranks is idle"
! grep -q "$warned" kept/run.log || fail "a warning about a number of replicas that stays"
