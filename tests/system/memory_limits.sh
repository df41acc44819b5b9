# Ranks in control groups with unequal limits of memory: the even plan does not fit, the planned one stores
# more where there is room and trains the same; what cannot fit anywhere is refused with the arithmetic.
# Where no such groups can be made the test says so and ends.
# rotates
. "$T3D_SOURCE/tests/support/job.sh"
make_text 20000
make_input
v1=/sys/fs/cgroup/memory
if [[ -e $v1/memory.limit_in_bytes ]]; then
  version=1 top=$v1$(sed -n 's/^[0-9]*:\([a-z,]*,\)*memory\(,[a-z,]*\)*:\(.*\)/\3/p' /proc/self/cgroup)
  [[ -d $top ]] || top=$v1 # a container sees its own group at the mount
else
  version=2 top=/sys/fs/cgroup
fi
groups=("$top/t3d-test-$$-0" "$top/t3d-test-$$-1")
remove_groups() {
  for group in "${groups[@]}"; do
    for _ in $(seq 50); do
      [[ -d $group ]] && ! rmdir "$group" 2> /dev/null || break
      sleep 0.1
    done
  done
}
trap remove_groups EXIT

# limit RANK MIB: of its group, without swap
limit() {
  local group=${groups[$1]} bytes=$(($2 << 20))
  remove_group_of "$1"
  mkdir "$group" 2> /dev/null || return 1
  if ((version == 1)); then
    echo $bytes > "$group/memory.limit_in_bytes" || return 1
    [[ ! -e $group/memory.memsw.limit_in_bytes ]] || echo $bytes > "$group/memory.memsw.limit_in_bytes"
  else
    echo $bytes > "$group/memory.max" || return 1
    [[ ! -e $group/memory.swap.max ]] || echo 0 > "$group/memory.swap.max"
  fi 2> /dev/null
}
remove_group_of() {
  for _ in $(seq 50); do
    [[ -d ${groups[$1]} ]] || return 0
    rmdir "${groups[$1]}" 2> /dev/null || sleep 0.1
  done
}
peak_mib() { # RANK; nothing where the kernel does not say
  cat "${groups[$1]}"/memory.{max_usage_in_bytes,peak} 2> /dev/null | awk '{ printf "%d", $1 / 1048576 }'
}
limits() { limit 0 "$1" && limit 1 "$2"; }
if ! limits 8192 8192 || ! bash -c "echo \$\$ > '${groups[0]}/cgroup.procs'" 2> /dev/null; then
  echo "skipped: no control groups of memory can be made here"
  exit 0
fi

# Every rank enters its group before it becomes the program.
cat > in_its_group <<SH
#!/bin/bash
echo \$\$ > "$top/t3d-test-$$-\${OMPI_COMM_WORLD_RANK:-\$PMIX_RANK}/cgroup.procs" || exit 1
exec "$T3D_BIN" "\$@"
SH
chmod +x in_its_group
T3D_BIN=$PWD/in_its_group

# 18.9 M weights: gradients 72 MiB; weights, their gradients at rest and two moments, 288 MiB, are stored
# apart. A checkpoint is packed in up to 64 MiB.
common=(input.toml --set "mesh.cuboid=[2,1,1]" --set mesh.keep=none --set model.hidden=512 --set model.heads=8
  --set model.layers=6 --set batch.sequences=4 --set batch.micro=0 --set schedule.kind=constant --set debug.threads=1
  --set run.steps=3 --set hetero.probe_seconds=0.4)
small=195

run 2 "${common[@]}" -d free
expect_status 0

# The even plan, asked for by mesh.tokens: refused; where the program is told that there is more, the kernel
# ends it.
limits 8192 $small
run 2 "${common[@]}" -d even --set "mesh.tokens=[1,1]"
expect_status 69
expect_text "too little memory on rank 1: the rank at d=0 i=1 j=0 k=0 needs 188 MiB (weights .* messages"
expect_text "control group .*t3d-test-[0-9]*-1 of .* has 195 MiB in all"
[[ ! -e even/log.jsonl ]] || fail "the run began"
limits 8192 $small
run 2 "${common[@]}" -d killed --set "emulate.memory_mib=[8192,8192]"
((status != 0 && status != 69)) || fail "the even plan fits: this test shows nothing"
[[ ! -e killed/ckpt/step-00000003 ]] || fail "the even plan fits"

# Planned: rank 0 stores more.
limits 8192 $small
run 2 "${common[@]}" -v -d planned --set hetero.speeds=probe
expect_status 0
peak=$(peak_mib 1)
echo "rank 1: $peak MiB of $small MiB at most"
((${peak:-0} < small)) || fail "rank 1 reached its limit"
same_losses free planned 1e-4
expect_text "planned by the ranks' speeds"
expect_text "impossible: even: rank 1 .* needs .* and has"
uneven() { # DIR: rank 0 stores more than half
  local first all
  read -r first all <<< "$(sed -n 's/^storage = \[\[0, \([0-9]*\), \([0-9]*\)\], 1\]/\1 \2/p' "$1/plan.toml")"
  grep -q '^place = \[1, 0\]' "$1/plan.toml" && first=$((all - first))
  ((2 * first > all)) || fail "storage of $1 is not uneven: rank 0 has $first of $all parts"
}
uneven planned

# So it is where no speed is asked for.
limits 8192 $small
run 2 "${common[@]}" -d equal
expect_status 0
same_losses free equal 1e-4
expect_text "plan: by the ranks' memory, as rank 1 .* needs .* and has"
uneven equal

# What another process has now may become free: a warning, and the plan takes what there is.
limits 8192 700
cat > other.py <<'PY'
import os, sys, time
held = b"x" * (590 << 20)
open("holds", "w").close()
while not os.path.exists("given/resolved.toml") and not os.path.exists("ended") and os.getppid() > 1:
    time.sleep(0.005)
PY
bash -c "echo \$\$ > '${groups[1]}/cgroup.procs' && exec python3 other.py" &
other=$!
for _ in $(seq 200); do [[ -e holds ]] && break || sleep 0.05; done
[[ -e holds ]] || fail "no memory was taken"
run 2 "${common[@]}" -d given --set hetero.speeds=probe
touch ended
wait $other # where it does not end itself, the kernel ends it first
expect_status 0
expect_text "warning: memory will be short unless others give some back: rank 1 .* needs .* and has"
same_losses free given 1e-4
uneven given

# Nowhere enough.
for speeds in probe equal; do
  limits 250 250
  run 2 "${common[@]}" -d none --set hetero.speeds=$speeds
  expect_status 69
  expect_text "rank [01].* needs [0-9.]* MiB (weights"
  expect_text "has [1-9][0-9.]* MiB"
  [[ ! -e none/log.jsonl ]] || fail "the run began"
done
