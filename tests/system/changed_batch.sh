# Another batch.sequences on continuation: the run goes on with the next sample, and ends after the tokens
# that were asked for. With a learning rate of almost 0 losses depend on the samples only.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 20000
make_input
# 320 samples of 32 tokens.
common=(input.toml --set model.dropout=0 --set optimizer.lr=1e-12 --set run.tokens=10240
  --set batch.micro=0)
run 1 "${common[@]}" -d single --set run.steps=0 --set batch.sequences=4
expect_status 0
losses single > quarters.txt
[[ $(wc -l < quarters.txt) == 80 ]] || fail "320 samples are not 80 steps of 4"

# samples DIR: the losses are the means over the samples that follow on each other, `sizes` of 4 a step
check_samples() { # DIR FIRST_SIZE FIRST_STEPS NEXT_SIZE STEPS
  losses "$1" > steps.txt
  [[ $(wc -l < steps.txt) == "$5" ]] || fail "$1 has $(wc -l < steps.txt) steps instead of $5"
  awk -v first="$2" -v n="$3" -v next_size="$4" '
    NR == FNR { quarter[NR] = $2; next }
    { size = FNR <= n ? first : next_size; sum = 0
      for (i = 0; i < size; ++i) sum += quarter[++at]
      d = sum / size - $2; if (d < 0) d = -d
      if (d > 2e-6 * $2) { print "step", FNR, "has the loss", $2, "instead of", sum / size; bad = 1 } }
    END { exit bad }' quarters.txt steps.txt || fail "$1 reads other samples"
}
for batch in 12 4; do
  run 2 "${common[@]}" -d more --set run.steps=10
  expect_status 0
  run 2 "${common[@]}" -d more --set run.steps=0 --set batch.sequences=$batch
  expect_status 0
  expect_text "resumed from"
  check_samples more 2 10 $((batch / 4)) $((10 + 240 / batch))
  rm -rf more
done
