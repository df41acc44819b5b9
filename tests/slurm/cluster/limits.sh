# Sourced: CPU quota and memory limit of a node, as control groups of version 1 or 2. Their folders
# are named after DIR and listed in $dir/limits/groups.

cgroup_mount() { # CONTROLLER: where version 1 has it
  awk -v c="$1" '$3 == "cgroup" { n = split($4, o, ","); for (i = 1; i <= n; ++i) if (o[i] == c) { print $2; exit } }' /proc/mounts
}
cgroup2_mount() { awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts; }

# group_of CONTROLLER: the folder for this cluster's groups
group_of() {
  local mount name
  name=testcluster-$(printf '%s' "$dir" | cksum | tr ' ' '-')
  mount=$(cgroup_mount "$1")
  if [[ -z "$mount" ]]; then
    mount=$(cgroup2_mount)
    grep -qsw "$1" "$mount/cgroup.controllers" || return 1
  fi
  echo "$mount/$name"
}

# write_limit FILE VALUE: of whichever of version 1 and 2 there is
set_cpu() { # GROUP CORES; a period of 10 ms, far below a training step
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
  local file controller parent group
  : > "$dir/limits/groups"
  for file in "$dir"/limits/n*; do
    [[ -e "$file" ]] || continue
    controller=${file##*.}
    parent=$(group_of "$controller") || { echo "cluster.sh: no control group '$controller' here" >&2; return 1; }
    group=$parent/$(basename "${file%.*}")
    mkdir -p "$parent"
    grep -qsx "$parent" "$dir/limits/groups" || echo "$parent" >> "$dir/limits/groups"
    if [[ -e "$parent/cgroup.subtree_control" ]]; then
      echo "+$controller" > "$(dirname "$parent")/cgroup.subtree_control"
      echo "+$controller" > "$parent/cgroup.subtree_control"
    fi
    mkdir -p "$group"
    echo "$group" >> "$dir/limits/groups"
    "set_$controller" "$group" "$(< "$file")"
  done
}

enter_limits() { # n, by the node's first process
  local group
  while read -r group; do
    if [[ "$group" == */"n$1" ]]; then echo 0 > "$group/cgroup.procs"; fi
  done < "$dir/limits/groups"
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
