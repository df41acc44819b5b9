# An update that overflows ruins the weights after loss and gradient were looked at: no checkpoint of them is
# written, the sound ones stay, and eval and generate say when weights are ruined.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 20000
make_input
common=(input.toml -d run --set schedule.kind=constant --set checkpoint.every_steps=1 --set checkpoint.keep=1)
run 1 "${common[@]}" --set run.steps=3
expect_status 0
for ranks in 1 2; do
  run $ranks "${common[@]}" --set run.steps=9 --set optimizer.lr=1e39 --set optimizer.weight_decay=0
  expect_status 65
  expect_text "weight.* is not finite after the update of step 4"
  [[ $(ls run/ckpt | grep -c "^step-") == 1 && -d run/ckpt/step-00000003 ]] ||
    fail "not the sound checkpoint alone: $(ls run/ckpt)"
done
grep -q '"code": 65' run/exit.json || fail "exit.json says $(cat run/exit.json)"
run 1 eval run text.txt
expect_status 0
run 1 "${common[@]}" --set run.steps=5
expect_status 0
expect_text "resumed from run/ckpt/step-00000003"

# An update that leaves huge numbers is saved; the checkpoint before it stays until a step has gone on from the
# new one.
cp -r run once
run 1 input.toml -d once --set schedule.kind=constant --set checkpoint.every_steps=1 --set checkpoint.keep=1 \
  --set run.steps=9 --set optimizer.lr=1e37 --set optimizer.weight_decay=0
expect_status 65
[[ -d once/ckpt/step-00000005 && -d once/ckpt/step-00000006 ]] || fail "only $(ls once/ckpt) stayed"
run 1 input.toml --set schedule.kind=constant --set checkpoint.every_steps=1 --set checkpoint.keep=1 \
  -r once/ckpt/step-00000005 -d again --set run.steps=8
expect_status 0
[[ $(ls again/ckpt | grep -c "^step-") == 1 ]] || fail "more than one stays at the end: $(ls again/ckpt)"

# Weights that are huge, but numbers, are saved; what computes with them says what came out.
run 1 input.toml -d huge --set schedule.kind=constant --set run.steps=1 --set optimizer.lr=1e37 \
  --set optimizer.weight_decay=0
expect_status 0
for command in "eval huge text.txt" "generate huge --prompt ab --tokens 3"; do
  run 1 $command
  expect_status 65
done
