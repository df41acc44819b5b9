# 20 steps = 10 steps, killed, 10 more: bitwise on the same mesh, to 1e-4 on another one; also when the
# kill comes while a checkpoint is being written, by signal, and after all steps are done.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 20000
make_input
args=(input.toml --set "mesh.cuboid=[1,2,2]")
run 4 "${args[@]}" -d whole
expect_status 0

# A kill in the middle: the job dies with all its ranks, some steps behind its last checkpoint. Long
# enough that it is still running when the kill comes, whenever that is.
long=(--set run.steps=600 --set checkpoint.every_steps=10 --set log.every_steps=100)
run 4 "${args[@]}" -d reference "${long[@]}"
expect_status 0
start_until() { # DIR STEP: the job runs in the background as $job and has done the step
  mpirun -n 4 --oversubscribe "$T3D_BIN" "${args[@]}" -d "$1" "${long[@]}" > out.log 2>&1 &
  job=$!
  for _ in $(seq 1200); do
    grep -q "\"step\":$2," "$1/log.jsonl" 2> /dev/null && return
    kill -0 $job 2> /dev/null || fail "the job ended before step $2"
    sleep 0.02
  done
  fail "no step $2"
}
start_until half 13
for rank in $(pgrep -P $job); do kill -KILL "$rank"; done
kill -KILL $job 2> /dev/null
wait $job 2> /dev/null
[[ -e half/ckpt ]] && ! ls half/ckpt | grep -q step-00000600 || fail "the job was not interrupted"
run 4 "${args[@]}" -d half "${long[@]}"
expect_status 0
expect_text "resumed from half/ckpt/step-"
same_losses reference half 0

# Asked to stop by a signal: a checkpoint, exit code 75, and the rest continues bitwise.
start_until asked 5
for rank in $(pgrep -P $job); do kill -USR2 "$rank"; done
wait $job
status=$?
expect_status 75
expect_text "asked to stop by a signal"
run 4 "${args[@]}" -d asked "${long[@]}"
expect_status 0
expect_text "resumed from asked/ckpt/step-"
same_losses reference asked 0

run 4 "${args[@]}" -d constant --set schedule.kind=constant
expect_status 0

# Onto other meshes.
for mesh in "1 [1,1,1]" "6 [3,2,1]"; do
  read -r ranks cuboid <<< "$mesh"
  run 4 "${args[@]}" -d move --set run.steps=10 --set schedule.kind=constant
  expect_status 0
  run "$ranks" input.toml --set "mesh.cuboid=$cuboid" -d move --set schedule.kind=constant
  expect_status 0
  expect_text "resumed from"
  same_losses constant move 1e-4
  rm -rf move
done

# Killed while a checkpoint is being written: a folder without manifest, or none, is passed over.
run 4 "${args[@]}" -d torn --set run.steps=10 --set schedule.kind=constant
cp -r torn/ckpt/step-00000010 torn/ckpt/step-00000012
rm torn/ckpt/step-00000012/MANIFEST.json
truncate -s 1000 torn/ckpt/step-00000012/node-00000.*
run 4 "${args[@]}" -d torn --set schedule.kind=constant
expect_status 0
expect_text "resumed from torn/ckpt/step-00000010"
expect_text "passing over torn/ckpt/step-00000012: it has no MANIFEST.json"
same_losses constant torn 0

# Nothing left to do: says so, changes nothing.
run 4 "${args[@]}" -d whole
expect_status 0
expect_text "resumed from whole/ckpt/step-00000020"
