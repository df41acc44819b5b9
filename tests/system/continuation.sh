# 20 steps = 10 steps, killed, 10 more: bitwise on the same mesh, to 1e-4 on another one; also when the
# kill comes while a checkpoint is being written, by signal, and after all steps are done.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 20000
make_input
args=(input.toml --set "mesh.cuboid=[1,2,2]")
run 4 "${args[@]}" -d whole
expect_status 0

# A kill in the middle: the job dies with all its ranks, some steps behind the checkpoint of step 10.
kill_at() { # DIR STEP, further arguments
  local dir=$1 step=$2
  shift 2
  mpirun -n 4 --oversubscribe "$T3D_BIN" "${args[@]}" -d "$dir" "$@" > out.log 2>&1 &
  local job=$!
  for _ in $(seq 600); do
    grep -q "\"step\":$step," "$dir/log.jsonl" 2> /dev/null && break
    kill -0 $job 2> /dev/null || break
    sleep 0.05
  done
  pkill -KILL -P $job # the ranks
  kill -KILL $job 2> /dev/null
  wait $job 2> /dev/null
}
kill_at half 13 --set checkpoint.every_steps=10 --set run.steps=2000 --set schedule.kind=constant
ls half/ckpt | grep -q step-00000010 || fail "no checkpoint of step 10"
# The interrupted run planned more steps, under the same constant learning rate as this whole one:
run 4 "${args[@]}" -d constant --set schedule.kind=constant
expect_status 0
last=$(ls -d half/ckpt/step-* | sort | tail -n 1)
run 4 "${args[@]}" -d half --set schedule.kind=constant
if [[ $last == *00000010 ]]; then
  expect_status 0
  expect_text "resumed from half/ckpt/step-00000010 at step 10"
  same_losses constant half 0
fi

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
truncate -s 1000 torn/ckpt/step-00000012/node-00000.h5
run 4 "${args[@]}" -d torn --set schedule.kind=constant
expect_status 0
expect_text "resumed from torn/ckpt/step-00000010"
same_losses constant torn 0

# Asked to stop by a signal: a checkpoint, exit code 75, and the rest continues bitwise.
mpirun -n 4 --oversubscribe "$T3D_BIN" "${args[@]}" -d asked --set run.steps=5000 --set schedule.kind=constant > out.log 2>&1 &
job=$!
for _ in $(seq 600); do grep -q '"step":5,' asked/log.jsonl 2> /dev/null && break; sleep 0.05; done
for rank in $(pgrep -P $job); do kill -USR2 "$rank"; done
wait $job
status=$?
expect_status 75
expect_text "asked to stop by a signal"
run 4 "${args[@]}" -d asked --set run.steps=20 --set schedule.kind=constant
expect_status 0

# Nothing left to do: says so, changes nothing.
run 4 "${args[@]}" -d whole
expect_status 0
expect_text "resumed from whole/ckpt/step-00000020"
