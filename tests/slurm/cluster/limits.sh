# Sourced: control groups, of version 1 or 2, for the CPU quota and the memory limit of a node. Their
# folders are named after DIR and listed in $dir/limits/groups.
#
# Nodes without a quota share one CPU group. Outside of all groups the kernel makes one for each session
# (sched_autogroup), that is for each rank: a rank that waits and yields its core then yields to nobody,
# and a step lasts a hundred times as long.

cgroup_mount() { # CONTROLLER: where version 1 has it
  awk -v c="$1" '$3 == "cgroup" { n = split($4, o, ","); for (i = 1; i <= n; ++i) if (o[i] == c) { print $2; exit } }' /proc/mounts
}
cgroup2_mount() { awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts; }

# groups_of CONTROLLER: the folder for this cluster's groups
groups_of() {
  local mount name
  name=testcluster-$(printf '%s' "$dir" | cksum | tr ' ' '-')
  mount=$(cgroup_mount "$1")
  if [[ -z "$mount" ]]; then
    mount=$(cgroup2_mount)
    grep -qsw "$1" "$mount/cgroup.controllers" || return 1
  fi
  [[ -w "$mount" ]] || return 1
  echo "$mount/$name"
}

make_group() { # CONTROLLER NAME: prints its folder
  local parent group
  parent=$(groups_of "$1") || return 1
  group=$parent/$2
  grep -qsx "$parent" "$dir/limits/groups" || echo "$parent" >> "$dir/limits/groups"
  echo "$group" >> "$dir/limits/groups"
  mkdir -p "$parent" || return 1
  if [[ -e "$parent/cgroup.subtree_control" ]]; then
    echo "+$1" > "$(dirname "$parent")/cgroup.subtree_control" || return 1
    echo "+$1" > "$parent/cgroup.subtree_control" || return 1
  fi
  mkdir -p "$group" || return 1
  echo "$group"
}

set_cpu() { # GROUP CORES; a period of 10 ms, below a training step
  local quota
  quota=$(awk -v x="$2" 'BEGIN { printf "%d", x * 10000 }')
  if [[ -e "$1/cpu.max" ]]; then
    echo "$quota 10000" > "$1/cpu.max"
  else
    echo 10000 > "$1/cpu.cfs_period_us"
    echo "$quota" > "$1/cpu.cfs_quota_us"
  fi
}
set_memory() { # GROUP BYTES
  if [[ -e "$1/memory.max" ]]; then
    echo "$2" > "$1/memory.max"
  else
    echo "$2" > "$1/memory.limit_in_bytes"
  fi
}

make_limits() {
  local file controller group
  : > "$dir/limits/groups"
  for file in "$dir"/limits/n*; do
    [[ -e "$file" ]] || continue
    controller=${file##*.}
    group=$(make_group "$controller" "$(basename "${file%.*}")") ||
      { echo "cluster.sh: no control group '$controller' here" >&2; return 1; }
    "set_$controller" "$group" "$(< "$file")"
  done
  make_group cpu others > /dev/null || echo "cluster.sh: no control groups here; steps will be slow" >&2
}

enter_limits() { # n, by the node's first process
  local group
  while read -r group; do
    case "$group" in
      */"n$1") ;;
      */others) [[ ! -d "${group%/*}/n$1" ]] || continue ;;
      *) continue ;;
    esac
    echo 0 > "$group/cgroup.procs"
  done < "$dir/limits/groups"
}

# take_cores n, by the node's first process: as many cores as Slurm believes the node to have, where the
# machine has more. Else every rank would start a thread on each core of the machine.
take_cores() {
  local cores=() mine=() cpus k
  cpus=$(sed -n 's/.* CPUs=\([0-9]*\).*/\1/p' "$dir/slurm.conf")
  # shellcheck disable=SC2207  # numbers, one a line
  cores=($(taskset -cp $$ | sed 's/.*: *//' | tr , '\n' | while IFS=- read -r from to; do seq "$from" "${to:-$from}"; done))
  ((cpus < ${#cores[@]})) || return 0
  for ((k = 0; k < cpus; ++k)); do mine+=("${cores[(($1 - 1) * cpus + k) % ${#cores[@]}]}"); done
  taskset -cp "$(IFS=,; echo "${mine[*]}")" $$ > /dev/null
}

# Innermost first; the kernel needs a moment after the last process.
remove_limits() {
  local group
  [[ -e "$dir/limits/groups" ]] || return 0
  tac "$dir/limits/groups" | while read -r group; do
    wait_until 5 "$group is empty" removed "$group"
  done
  rm -f "$dir/limits/groups"
}
removed() { [[ ! -d "$1" ]] || rmdir "$1" 2> /dev/null; }
