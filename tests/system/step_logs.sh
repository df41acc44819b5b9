# log.tensorboard, log.csv: an independent reader finds in them what log.jsonl says, each step once, over a kill, a
# change of mesh, a new lineage.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 4000
make_input
args=(input.toml --set log.csv=true --set log.tensorboard=true --set checkpoint.every_steps=4 --set data.valid=text.txt
  --set eval.every_steps=3 --set eval.batches=1
  --set checkpoint.keep=9)
compare() { # STEPS FILES
  python3 "$T3D_SOURCE/tests/support/event_steps.py" run > compare.txt 2>&1 || { cat compare.txt >&2; fail "the logs differ"; }
  grep -q "^$1 steps" compare.txt || fail "not $1 steps: $(cat compare.txt)"
  (($(ls run/tensorboard | wc -l) == $2)) || fail "not $2 files: $(ls run/tensorboard)"
}
run 2 "${args[@]}" -d run --set run.steps=7
expect_status 0
compare 7 1

# As after a kill behind step 7: the checkpoint of step 4 is the newest, and the last record is torn.
rm -r run/ckpt/step-00000007
for log in run/log.jsonl run/log.csv run/tensorboard/*; do truncate -s -20 "$log"; done
run 1 "${args[@]}" -d run --set run.steps=10 # another mesh, other axes
expect_status 0
compare 10 2

# A new lineage from step 4 on; that of before stays as it was.
cp -r run/tensorboard before
run 2 "${args[@]}" -d run --set run.steps=6 -r run/ckpt/step-00000004
expect_status 0
compare 6 2
diff -r before run/tensorboard.lineage-0 || fail "the events of the lineage before have changed"
[[ -s run/log.lineage-0.csv ]] || fail "no log.csv of the lineage before"

echo "name,points" > mine.csv
mkdir -p other
cp mine.csv other/log.csv
run 1 "${args[@]}" -d other
expect_status 74
expect_text "other/log.csv is not a log of steps.*move it away"
cmp mine.csv other/log.csv || fail "somebody else's file was changed"
