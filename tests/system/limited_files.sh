# A limit of file sizes (ulimit -f) is what a full disk is: checkpoints that do not fit cost a warning
# each, the training goes on, and its end says that there is no checkpoint.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 20000
make_input
(
  ulimit -S -f 64 # KiB; a checkpoint has more
  run 1 input.toml --set run.steps=6 --set checkpoint.every_steps=2
  expect_status 74
  expect_text "no checkpoint of step 2: .*File too large"
  expect_text "no checkpoint of step 4"
) || exit 1
[[ $(losses runs/t | wc -l) == 6 ]] || fail "not all steps were done"
! find runs -name '*.tmp' -o -name '*partial*' | grep . || fail "something was left behind"
