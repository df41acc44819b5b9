# Sourced: slurm.conf and what else the daemons read.
nodes=1
cpus=1
inside=/run/testcluster # DIR in the head and in the nodes: short, since paths of sockets have 108 characters
munge_socket=/run/munge.socket
subnet=10.10.0          # node n has .n, the head .254: every cluster the same, on a bridge of its own

# What --conf replaces. The schedulers look every second; no memory or cores are enforced.
declare -A conf=(
  [ClusterName]=test [SlurmctldHost]="head($subnet.254)" [SlurmUser]=root [SlurmdUser]=root
  [AuthType]=auth/munge [AuthInfo]="" [MpiDefault]=pmix
  [ProctrackType]=proctrack/linuxproc [TaskPlugin]=task/none [SelectType]=select/cons_tres
  [SelectTypeParameters]=CR_Core [PreemptType]=preempt/partition_prio [PreemptMode]=REQUEUE
  [JobRequeue]=1 [ReturnToService]=2 [SlurmdParameters]=config_overrides
  [SchedulerParameters]=bf_interval=1,sched_interval=1,batch_sched_delay=0
  [StateSaveLocation]="$inside/state" [SlurmdSpoolDir]=/run/slurmd [SlurmdPidFile]=/run/slurmd.pid
  [SlurmctldPidFile]="$inside/slurmctld.pid" [TmpFS]=/tmp
  [JobCompType]=jobcomp/filetxt [JobCompLoc]="$inside/log/jobs.txt"
)
declare -A low=([Default]=YES [PriorityTier]=1 [GraceTime]=10 [MaxTime]=INFINITE [State]=UP)
declare -A high=([PriorityTier]=10 [PreemptMode]=OFF [MaxTime]=INFINITE [State]=UP)

settings() { # NAME OF ARRAY
  local -n table=$1
  local key
  for key in "${!table[@]}"; do printf '%s=%s\n' "$key" "${table[$key]}"; done | sort
}

write_config() {
  local n range="[1-$nodes]"
  conf[AuthInfo]=socket=$munge_socket${conf[AuthInfo]:+,${conf[AuthInfo]}}
  ((nodes > 1)) || range=1
  {
    settings conf
    echo "NodeName=n$range NodeAddr=$subnet.$range CPUs=$cpus Sockets=1 CoresPerSocket=$cpus State=UNKNOWN"
    echo "PartitionName=low Nodes=n$range $(settings low | tr '\n' ' ')"
    echo "PartitionName=high Nodes=n$range $(settings high | tr '\n' ' ')"
  } > "$dir/slurm.conf"
  {
    echo "127.0.0.1 localhost"
    echo "$subnet.254 head"
    for ((n = 1; n <= nodes; ++n)); do echo "$subnet.$n n$n"; done
  } > "$dir/hosts"
  # The kernel has one table of neighbours for all namespaces, and 64 nodes overflow it. Fixed
  # entries do not count.
  for ((n = 1; n <= nodes; ++n)); do
    echo "neigh replace $subnet.$n lladdr $(hardware_address "$n") dev eth0 nud permanent"
  done > "$dir/neighbours"
  echo "neigh replace $subnet.254 lladdr $(hardware_address 254) dev eth0 nud permanent" >> "$dir/neighbours"
  head -c 1024 /dev/urandom > "$dir/munge.key"
  chmod 400 "$dir/munge.key"
  write_commands
}

hardware_address() { printf '02:00:00:00:00:%02x' "$1"; }

# Commands for outside: they run in the head, but see the caller's folders and processes.
write_commands() {
  local name path
  for name in sbatch srun salloc squeue sinfo scancel scontrol sacct sprio sstat sattach; do
    path=$(command -v "$name") || continue
    cat > "$dir/bin/$name" <<COMMAND
#!/bin/sh
export SLURM_CONF=$inside/slurm.conf
if [ -e "\$SLURM_CONF" ]; then exec $path "\$@"; fi
read -r head started < '$dir/pids/head.inner' || exit 69
exec nsenter -t "\$head" -n -u -i -m sh -c 'cd "\$1" && shift && exec "\$@"' sh "\$PWD" $path "\$@"
COMMAND
    chmod +x "$dir/bin/$name"
  done
}
