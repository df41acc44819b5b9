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

# Switched on later: what log.jsonl has of the steps before is there, too.
args=("${args[@]/log.csv=true/log.csv=false}")
args=("${args[@]/log.tensorboard=true/log.tensorboard=false}")
run 2 "${args[@]}" -d run --set run.steps=5 -r never
run 1 "${args[@]}" -d run --set run.steps=12 --set log.csv=true --set log.tensorboard=true
expect_status 0
expect_text "log.csv is filled up with 5 steps of log.jsonl, from step 1 on"
compare 12 2

# A fill-up that was ended after three steps: the next start puts the rest.
cp -r run half
head -n 4 run/log.csv > half/log.csv
run 1 "${args[@]}" -d half --set run.steps=14 --set log.csv=true
expect_status 0
expect_text "log.csv is filled up with 9 steps of log.jsonl, from step 4 on"
[[ "$(tail -n +2 half/log.csv | cut -d , -f 1 | paste -sd ' ')" == "$(seq -s ' ' 1 14)" ]] || fail "steps of half/log.csv"

# A hole, as of a full disk, and an end before the checkpoint: said at once by whoever reads, and at the next start.
sed -i -e '3,4d' -e '11,$d' run/log.jsonl
holes="steps 3 to 4 and 11 to 12"
for reader in "status run" "watch run --once" "report run -o page.html"; do
  run 1 $reader
  expect_status 0
  expect_text "$holes"
done
python3 "$T3D_SOURCE/tests/support/report_data.py" page.html run || fail "the page draws over the hole"
mkdir study && cp -r run study/run
run 1 scaling --collect study
expect_text "study/run/log.jsonl lacks steps 11 to 12"
run 1 "${args[@]}" -d run --set run.steps=15
expect_status 0
expect_text "warning: run/log.jsonl lacks $holes"
run 1 status run
expect_text "log.jsonl lacks $holes"

# A lineage that came to no checkpoint is given up: the one before comes back in all forms, also in one that it never had.
run 1 "${args[@]}" -d given --set run.steps=6
run 1 "${args[@]}" -d given --set run.steps=7 --set optimizer.lr=0.02 -r given/ckpt/step-00000004 --set log.csv=true
expect_status 0
rm -r given/ckpt/*lineage-1*
run 1 "${args[@]}" -d given --set run.steps=9 --set log.csv=true
expect_status 0
expect_text "log.csv is filled up with 6 steps of log.jsonl, from step 1 on"
python3 - << 'EOF' || fail "log.csv has steps of the lineage that was given up"
import csv, json
logged = {r["step"]: r["loss"] for r in map(json.loads, open("given/log.jsonl"))}
table = {int(r["step"]): float(r["loss"]) for r in csv.DictReader(open("given/log.csv"))}
assert list(table) == list(range(1, 10)), list(table)
assert all(abs(table[step] - loss) < 1e-6 for step, loss in logged.items()), (table, logged)
EOF

echo "name,points" > mine.csv
mkdir -p other
cp mine.csv other/log.csv
run 1 "${args[@]}" -d other --set log.csv=true
expect_status 0
expect_text "other/log.csv is not a log of steps.*it is kept as other/log.csv.damaged"
cmp mine.csv other/log.csv.damaged || fail "somebody else's file was changed"
head -c 5 other/log.csv > cut.csv && mv cut.csv other/log.csv
run 1 "${args[@]}" -d other --set log.csv=true
expect_status 0
