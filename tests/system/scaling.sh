# scaling on 1, 2 and 3 ranks of this machine: its numbers are those of the logs, recomputed by another program; a second call
# runs what is missing and nothing else; runs that do not belong together are named.
# rotates
. "$T3D_SOURCE/tests/support/job.sh"
make_text 20000
make_input
same=(--repeat 2 --steps 8 --set log.every_steps=100)
run 1 scaling input.toml --ranks 2,1 "${same[@]}" -o study
expect_status 0
[[ $(grep -c "ms a step" screen.log) == 4 ]] || fail "four runs"
# Interleaved: the first repeat of all points comes first.
grep -o "repeat [12] of 2, ranks-[12]" screen.log | tr '\n' ' ' | grep -q "^repeat 1 of 2, ranks-1 repeat 1 of 2, ranks-2 repeat 2 of 2, ranks-1 " ||
  fail "the order of the runs"
python3 "$T3D_SOURCE/tests/support/study_numbers.py" study || fail "the numbers"
[[ ! -e study/ranks-1/repeat-1/ckpt ]] || fail "a checkpoint is left"
grep -q "Roofline of .*</text>" study/roofline-ranks-1.svg && ! grep -qi "nan\|inf" study/roofline-ranks-2.svg || fail "the rooflines"
grep -q '"emulated": false' study/ranks-1/operators.json || fail "operators.json"
grep -q "threads = " study/ranks-2/input.toml || fail "ranks have other numbers of cores at other points"

# One point more, one run lost: both are run, and no other.
touch study/ranks-1/repeat-1/here
rm study/ranks-2/repeat-2/exit.json
run 1 scaling input.toml --ranks 1,2,3 "${same[@]}" -o study
expect_status 0
[[ $(grep -c "ms a step" screen.log) == 3 && -e study/ranks-1/repeat-1/here ]] || fail "not what was missing"
[[ -e study/ranks-2/repeat-2.unfinished-1/log.jsonl ]] || fail "what was left of the run is gone"
python3 "$T3D_SOURCE/tests/support/study_numbers.py" study || fail "the numbers of the longer study"
(($(env -u OMP_NUM_THREADS nproc) > 2)) || grep -q "^strong,3,.*shared cores" study/scaling.csv || fail "shared cores are not marked"

# Runs of one point that chose different shapes are a row for each, and that is said.
for cuboid in 2,1,1 1,2,1; do
  run 2 study/ranks-2/input.toml -q -d "study/ranks-2/repeat-9${cuboid//,/}" --set "mesh.cuboid=[$cuboid]"
  expect_status 0
done
run 1 scaling --collect study
expect_status 0
expect_text "warning: runs of ranks-2 chose different shapes and are a row for each: .*1 x 2 x 1 (. run.*2 x 1 x 1 (. run.*--shapes"
rm -r study/ranks-2/repeat-9*

# Weak: sequences grow; slowness is marked; a point without a run is missing.
run 1 scaling input.toml --ranks 1,2 --weak --repeat 1 --steps 6 --set 'emulate.schedule=["1:0:2"]' -o weak
expect_status 0
rm -r weak/ranks-1/repeat-1
run 1 scaling --collect weak
expect_status 0
python3 "$T3D_SOURCE/tests/support/study_numbers.py" weak || fail "the numbers of weak scaling"
expect_text "1 .*ranks-1 .* missing"
grep -q "^weak,2,1,.*,16,1,1,.*emulated" weak/scaling.csv || fail "weak scaling, emulated"

# What is no study.
run 1 scaling input.toml --ranks 1,2,3 --repeat 2 --steps 9 -o study
expect_status 78
expect_text "study/ranks-1/input.toml is of another input"
run 1 scaling input.toml --ranks 1 --weak -o study
expect_status 78
expect_text "holds a study of strong scaling"
mkdir runs
cp -r study/ranks-1/repeat-1 runs/a && cp -r study/ranks-2/repeat-1 runs/b
run 1 scaling --collect runs
expect_status 0
[[ $(wc -l < runs/scaling.csv) == 3 ]] || fail "runs without a study"
expect_text "no roofline: of a: there is no runs/a/operators.json"
sed -i 's/layers = 2 /layers = 3 /; s/watchdog_seconds = [0-9]*/watchdog_seconds = 99/; s/threads = 1 /threads = 7 /' runs/b/run.json
run 1 scaling --collect runs
expect_status 78
expect_text "these runs do not belong together: debug.threads is 1 in runs/a and 7 in runs/b; model.layers is 2 in runs/a and 3 in runs/b$"
# Another build of the same commit: said, and its row is marked.
cp study/ranks-2/repeat-1/run.json runs/b/
sed -i 's/"build": "[0-9a-f]*"/"build": "0123"/' runs/b/run.json
run 1 scaling --collect runs
expect_status 0
expect_text "warning: the program was replaced between the runs: runs/b is of commit .*, build 0123"
grep -q "^strong,2,.*other program" runs/scaling.csv || fail "the row of the other program"
cp study/ranks-2/repeat-1/run.json runs/b/
head -c 300 runs/b/log.jsonl > cut.jsonl && cp cut.jsonl runs/b/log.jsonl
run 1 scaling --collect runs
expect_status 78
expect_text "runs/b/log.jsonl has .* steps"
head -c 300 study/ranks-2/repeat-1/run.json > runs/b/run.json
run 1 scaling --collect runs
expect_status 74
expect_text "runs/b/run.json: is no record of a run"
mkdir empty
run 1 scaling --collect empty
expect_status 66
run 1 scaling --collect nowhere
expect_status 66
