# slow: minutes in all
# The test cluster itself: nodes with names of their own, preemption, a node that dies and comes
# back, and nothing that is left of it.
source "$T3D_SOURCE/tests/support/slurm.sh"

start_cluster 4 --conf SlurmdTimeout=5 --conf MessageTimeout=2 --conf AuthInfo=cred_expire=5 \
  --low GraceTime=0 --cpu-quota 2=0.25 --memory 2=256M

echo "nodes"
srun -N 4 hostname | sort > names.txt
printf 'n1\nn2\nn3\nn4\n' | diff - names.txt || fail "four nodes should answer with their names"
touch /tmp/outside.$$ /dev/shm/outside.$$
srun -N 4 ls /tmp /dev/shm > private.txt
rm /tmp/outside.$$ /dev/shm/outside.$$
! grep -q outside private.txt || fail "a node sees the /tmp or /dev/shm of another"

echo "limits"
spin='while ((SECONDS < 1)); do :; done; times'
srun -w n1 bash -c "$spin" > full.txt
srun -w n2 bash -c "$spin" > quarter.txt
cpu_seconds() { awk 'NR == 1 { gsub(/[0-9]+m|s/, ""); print $1 + $2 }' "$1"; } # of the shell, in a second
awk -v full="$(cpu_seconds full.txt)" -v part="$(cpu_seconds quarter.txt)" \
  'BEGIN { exit !(part <= 0.35 && part < 0.7 * full) }' || fail "n2 has a quarter of a core: $(cat full.txt quarter.txt)"
srun -w n2 python3 -c 'x = bytearray(600 << 20)' > memory.txt 2>&1 && fail "n2 has 256 MiB only"

echo "preemption"
# Slurm's first TERM goes to the steps only: a job whose script ends of it is not requeued.
low=$(sbatch -o low.log --open-mode=append --parsable -N 4 --exclusive --wrap 'sleep 100')
wait_for_state "$low" RUNNING 10
high=$(sbatch -o high.log --parsable -p high -N 4 --exclusive --wrap 'sleep 1')
wait_for_state "$low" PENDING 20
wait_for_state "$high" RUNNING 20
wait_for_state "$high" COMPLETED 10
wait_for_state "$low" RUNNING 60
[[ "$(job_field "$low" Restarts)" == 1 ]] || fail "the preempted job should have been started again"

echo "a dead node"
cluster kill-node 3
node_is() { [[ "$(sinfo -h -n n3 -p low -o %t)" == "$1"* ]]; }
in_time 30 "n3 is down" node_is down
scancel "$low"
cluster start-node 3
in_time 30 "n3 is idle again" node_is idle
[[ "$(srun -w n3 hostname)" == n3 ]] || fail "n3 should work again"

echo "an owner that is killed"
mkdir other
sleep 1000 &
owner=$!
bash "$cluster_tool" start "$PWD/other" 1 --with $owner || fail "no second cluster beside the first"
[[ "$(other/bin/srun hostname)" == n1 ]] || fail "the second cluster should work"
kill -KILL $owner
in_time 10 "the cluster of a killed owner is gone" test ! -e other/pids

echo "the end"
cat cluster/pids/* > pids.txt
spaces() { readlink /proc/[0-9]*/ns/{net,uts,mnt,pid} | sort -u; }
spaces > before.txt
cut -d ' ' -f 1 pids.txt | while read -r pid; do readlink "/proc/$pid"/ns/{net,uts,mnt} 2> /dev/null; done |
  sort -u | grep -vxF "$(readlink /proc/self/ns/{net,uts,mnt})" > inside.txt
(($(wc -l < inside.txt) >= 5)) || fail "the cluster should have namespaces"
cluster stop
while read -r pid started; do
  [[ ! -e /proc/$pid ]] || [[ "$(cut -d ' ' -f 22 "/proc/$pid/stat")" != "$started" ]] || fail "process $pid is left"
done < pids.txt
! spaces | grep -xFf inside.txt || fail "somebody still lives in a namespace of the cluster"
! ls -d /sys/fs/cgroup/{,*/}testcluster-* 2> /dev/null || fail "a control group is left"
