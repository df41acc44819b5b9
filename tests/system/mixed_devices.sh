# GPU and CPU ranks in one job, with nothing to configure: the probe finds out how fast each is, the plan follows,
# and the losses are those of one rank. The GPU is emulated and so slow that the CPUs are made slower, too.
# rotates
. "$T3D_SOURCE/tests/support/job.sh"
export T3D_EMULATED_TIME=1
make_text 20000
make_input
common=(input.toml --set run.steps=16 --set schedule.kind=constant --set batch.sequences=16 --set batch.micro=0 --set debug.threads=1)
run 1 "${common[@]}" -d one --set precision.backend=reference
expect_status 0

T3D_BIN=$T3D_EMULATED
mixed=(--set mesh.device=mixed --set mesh.replicas=3 --set balance.kind=model --set "mesh.cuboid=[1,1,1]")

# The slowest rank of the probe, the emulated GPU, has the last place and begins with fewest sequences. On a busy machine the
# probe may find it so slow that it begins with none, or as fast as the others: once more with CPUs that are slower, or faster.
# How slow they have to be is another number on each machine.
slower=60
for attempt in 1 2 3 4 5 6; do
  rm -rf mixed
  run 3 "${common[@]}" "${mixed[@]}" -d mixed --set hetero.speeds=probe --set hetero.probe_seconds=4 --set "emulate.slowdown=[1,$slower,$slower]"
  expect_status 0
  expect_text "1 rank on GPUs, 2 on CPUs"
  grep -q differ out.log && fail "bytes differ from the formula"
  same_losses one mixed 1e-4
  shares=$(sed -n 's/.*"slab_sequences":\[\([0-9,]*\)\].*/\1/p' mixed/log.jsonl | head -n 1 | tr ',' ' ')
  read -r first second third <<< "$shares"
  echo "attempt $attempt: CPUs $slower times slower, $(grep -o "planned by the ranks' speeds\|the even plan stays" out.log), shares $shares"
  if ((third == 0)); then
    slower=$((slower < 300 ? 3 * slower : 900))
  elif ((third >= first || third >= second)); then
    slower=$(((slower + 1) / 2))
  else
    break
  fi
done
expect_text "planned by the ranks' speeds"

# What the steps say of it, on the GPU's own clock and by class, may change that.
last=$(tail -n 1 mixed/log.jsonl)
((first + second + third == 16 && third >= 1 && third < first && third < second)) || fail "shares $shares"
grep -q "^place = \[[12], [12], 0\]" mixed/plan.toml || fail "rank 0 is not last: $(grep ^place mixed/plan.toml)"
grep -q '"emulated":true' <<< "$last" || fail "times are not called emulated"
for key in own matmul attention; do
  grep -q "\"$key\":\[[0-9.e+-]*[1-9][0-9.e+-]*," <<< "$last" || fail "no $key of rank 0 in: $last"
done
grep -q '"device": *"emulated' mixed/speeds.json || fail "no GPU in speeds.json"
