# 40 changes of plan in one job on 4 ranks: the losses are those of a run without them, and the processes
# grow no further after the tenth.
. "$T3D_SOURCE/tests/support/job.sh"
make_text 20000
make_input
common=(input.toml --set model.dropout=0 --set optimizer.lr=3e-4 --set schedule.kind=constant
  --set aggregate.reference_batch=8)

# Ten plans: those of short runs (on fewer ranks: the others are idle), and edited ones.
plan_of() { # FILE RANKS args...
  run "$2" "${common[@]}" -d short --set run.steps=1 --set checkpoint.restart=never "${@:3}"
  expect_status 0
  sed "s/^ranks = .*/ranks = 4/" short/plan.toml > "$1"
}
edited() { # FROM TO SED
  sed "$3" "$1" > "$2"
  cmp -s "$1" "$2" && fail "$3 changes nothing in $1"
}
plan_of plan1.toml 4 --set "mesh.cuboid=[2,1,2]" --set "mesh.tokens=[1,3]"
plan_of plan2.toml 4 --set "mesh.cuboids=[2,1,1,1,2,1]" --set mesh.replicas=2
plan_of plan3.toml 1 --set batch.micro=1
plan_of plan4.toml 3 --set "mesh.cuboid=[1,3,1]"
edited plan1.toml plan5.toml 's/^place = .*/place = [2, 0, 3, 1]/'
edited plan3.toml plan6.toml 's/^place = .*/place = [3]/'
edited plan2.toml plan7.toml 's/^keep_weights = .*/keep_weights = false/'
edited plan4.toml plan8.toml 's/^recompute = .*/recompute = "block"/'
edited plan1.toml plan9.toml 's/^attention = "sequences"/attention = "heads"/; t; s/^attention = "heads"/attention = "sequences"/'
edited plan1.toml plan10.toml 's/^hidden = .*/hidden = [[0, 8, 32], 1]/'

# Ten changes, a pause, thirty more, a pause; the plans come in turn.
wishes=""
step=0
for change in $(seq 40); do
  step=$((step + 2))
  ((change == 11)) && step=60
  wishes+="\"$step:plan$(((change - 1) % 10 + 1)).toml\", "
done
last=$step
steps=$((last + 40))
mpirun -n 4 --oversubscribe "$T3D_BIN" "${common[@]}" -d changed --set run.steps=$steps \
  --set "debug.replan=[${wishes%, }]" > out.log 2>&1 &
job=$!

# KiB that the largest rank has resident once the step is done.
resident_after() { # STEP
  for _ in $(seq 3000); do
    grep -q "\"step\":$1," changed/log.jsonl 2> /dev/null && break
    kill -0 $job 2> /dev/null || fail "the job ended before step $1"
    sleep 0.02
  done
  resident=0
  for rank in $(pgrep -P $job); do
    local one
    one=$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$rank/status" 2> /dev/null)
    ((${one:-0} > resident)) && resident=$one
  done
  ((resident > 0)) || fail "no rank is alive after step $1"
}
resident_after 30
early=$resident
resident_after $((last + 10))
late=$resident
wait $job
status=$?
expect_status 0
echo "resident after 10 changes $early KiB, after 40 $late KiB"
((late * 100 <= early * 102)) || fail "the ranks grow: $early KiB after 10 changes, $late KiB after 40"
cmp -s changed/plan.toml plan10.toml || fail "plan.toml is not the last plan"

run 4 "${common[@]}" -d unchanged --set run.steps=$steps --set "mesh.cuboid=[2,2,1]"
expect_status 0
same_losses unchanged changed 1e-4
