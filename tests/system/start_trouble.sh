# A start that finds what a killed one left, files that it cannot write, or that is suspended.
# rotates
. "$T3D_SOURCE/tests/support/job.sh"
make_text 20000
make_input

echo "what a killed check of the folder left is removed"
mkdir -p run/ckpt
touch run/ckpt/.seen-by-3-0123456789abcdef run/.seen-by-1-0123456789abcdef run/ckpt/.other
run 1 input.toml -d run --set run.steps=2
expect_status 0
[[ -z "$(find run -name '.seen-by-*')" ]] || fail "files of a check are left"
[[ -e run/ckpt/.other ]] || fail "another file is gone"

echo "what only tells of a run costs a run that goes on a warning"
for name in resolved.toml plan.toml; do
  rm run/$name
  mkdir run/$name # no file can take its place
done
run 1 input.toml -d run --set run.steps=4
expect_status 0
expect_text "warning: .*resolved.toml"
expect_text "resumed from"
grep -q '"step":4,' run/log.jsonl || fail "no further steps"
rmdir run/resolved.toml
run 1 input.toml -d run --set run.steps=6
expect_status 0
expect_text "warning: .*plan.toml"
mkdir -p new/resolved.toml
run 1 input.toml -d new --set run.steps=2
expect_status 74

echo "a start that is suspended goes on"
printf '#!/bin/bash\n((OMPI_COMM_WORLD_RANK == 1)) && exec sleep 1000\nexec "$@"\n' > one_missing
chmod +x one_missing
T3D_LAUNCH_SECONDS=4 mpirun --oversubscribe -n 2 ./one_missing "$T3D_BIN" input.toml -d unmet > out.log 2>&1 &
job=$!
trap 'kill -KILL $job $waiting 2> /dev/null' EXIT
for _ in $(seq 500); do
  waiting=$(pgrep -f "^$T3D_BIN input.toml -d unmet")
  [[ -n $waiting ]] && break
  sleep 0.02
done
sleep 1
kill -STOP "$waiting"
sleep 6
kill -CONT "$waiting"
sleep 1
kill -0 "$waiting" || fail "it ended as soon as it was resumed"
wait $job
status=$?
expect_status 76
expect_text "the ranks have not met within"
