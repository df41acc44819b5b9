#!/usr/bin/env bash
# A real Slurm of up to 64 nodes on this machine, for tests and to try things out. Needs root.
#
#   cluster.sh can                     0 where a cluster can be started; else 77 and why not
#   cluster.sh start DIR N [OPTIONS]   starts a head (munged, slurmctld) and the nodes n1 ... nN
#   cluster.sh env DIR                 prints exports; after them sbatch, srun, squeue, ... reach the cluster
#   cluster.sh kill-node DIR n         node n dies: link down, all its processes killed
#   cluster.sh start-node DIR n        node n is there again
#   cluster.sh stop DIR                ends all of it; also what a killed starter left behind
#
#   --cpus C             CPUs of a node (1); more than the machine has are believed, not there
#   --conf Key=Value     a line of slurm.conf, instead of ours (cluster/config.sh)
#   --low Key=Value      an option of the partition low (the default one, which preempted jobs come
#   --high Key=Value     from), of high; GraceTime=10 is that of low
#   --cpu-quota n=X      node n gets X cores' time at most, as 0.5 (a cgroup)
#   --memory n=BYTES     node n gets that much memory at most, as 512M (a cgroup)
#   --with PID           the cluster ends when this process has ended, whatever ended it
#
# A node has its own network, host name, processes, System V IPC, /tmp, /dev/shm and /run. All other
# folders are shared, and so are DIR and the folder where start was called, if they lie in /tmp.
# DIR holds everything: slurm.conf, log/, pids/. Clusters in different folders share nothing.
set -Eeuo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/cluster
source "$here/processes.sh"
source "$here/limits.sh"
source "$here/config.sh"

usage() { sed -n '2,21s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 64; }
refuse() { echo "no Slurm test cluster here: $*" >&2; exit 77; }

can() {
  local program
  (($(id -u) == 0)) || refuse "it needs root"
  for program in munged slurmctld slurmd srun ip nsenter unshare mount setsid taskset; do
    command -v "$program" > /dev/null || refuse "$program is not installed (jobs/packages.sh install slurm)"
  done
  # shellcheck disable=SC2016  # expanded by the inner shell
  unshare --net --uts --ipc --mount --pid --fork sh -c 'hostname t && mount -t proc proc /proc &&
    mount -t tmpfs t /run && ip link add v0 type bridge && ip link add v1 type veth peer name v2' \
    > /dev/null 2>&1 || refuse "namespaces with a network, or mounts in them, are not allowed"
}

start() {
  dir=$(realpath -m "$1")
  nodes=$2
  shift 2
  [[ "$nodes" =~ ^[0-9]+$ ]] && ((nodes >= 1 && nodes <= 64)) || usage
  [[ ! -e "$dir/pids/head" ]] || { echo "cluster.sh: there is a cluster in $dir" >&2; exit 69; }
  (can)
  mkdir -p "$dir"/{pids,log,state,limits,bin}
  local with=""
  while (($#)); do
    case "$1" in
      --cpus) cpus=$2 ;;
      --conf) conf[${2%%=*}]=${2#*=} ;;
      --low) low[${2%%=*}]=${2#*=} ;;
      --high) high[${2%%=*}]=${2#*=} ;;
      --cpu-quota) echo "${2#*=}" > "$dir/limits/n${2%%=*}.cpu" ;;
      --memory) echo "${2#*=}" > "$dir/limits/n${2%%=*}.memory" ;;
      --with) with=$2 ;;
      *) usage ;;
    esac
    shift 2
  done
  write_config
  make_limits
  trap 'stop "$dir"' ERR
  # Before the daemons: whatever happens to this script, they have an end.
  if [[ -n "$with" ]]; then
    in_background guard bash -c 'while kill -0 "$1"; do sleep 0.5; done; exec bash "$2" stop "$3"' \
      guard "$with" "${BASH_SOURCE[0]}" "$dir"
  fi
  in_background head unshare --net --uts --ipc --mount --pid --fork --kill-child \
    bash "$here/head.sh" "$dir"
  wait_until 10 "the controller answers" test -e "$dir/ready"
  local n
  for ((n = 1; n <= nodes; ++n)); do start_node "$n"; done
  wait_until 60 "$nodes nodes are idle" nodes_are_idle
}

nodes_are_idle() {
  (($("$dir/bin/sinfo" -h -N -p low -t idle -o %N 2> /dev/null | wc -l) == nodes))
}

start_node() { # n
  in_background "n$1" unshare --net bash "$here/link.sh" "$dir" "$1" "$PWD"
}

# The link first: the others see a node that says nothing any more, not closed connections.
kill_node() { # n
  local head
  is_alive "n$1" || return 0
  head=$(pid_of head)
  nsenter -t "$head" -n ip link set "v$1" down
  signal_recorded KILL "n$1"
  wait_until 10 "node $1 is gone" is_gone "n$1"
  nsenter -t "$head" -n ip link del "v$1" 2> /dev/null || true  # else its name is taken for a while
}

stop() {
  trap - ERR
  dir=$(realpath -m "$1")
  [[ -d "$dir/pids" ]] || return 0
  rm -rf "$dir/bin" "$dir/ready"
  local names deadline=$((SECONDS + 3))
  names=$(recorded)
  # shellcheck disable=SC2086  # a list of names
  signal_recorded TERM $names
  # shellcheck disable=SC2086
  until is_gone $names || ((SECONDS >= deadline)); do sleep 0.05; done
  # shellcheck disable=SC2086
  signal_recorded KILL $names
  # shellcheck disable=SC2086
  wait_until 10 "all processes are gone" is_gone $names
  rm -rf "$dir/pids"
  remove_limits
}

action=${1:-}
case "$action" in
  can) can ;;
  start) (($# >= 3)) || usage; shift; start "$@" ;;
  stop) (($# == 2)) || usage; stop "$2" ;;
  env)
    (($# == 2)) || usage
    printf 'export SLURM_CONF=%s/slurm.conf PATH=%q:$PATH\n' "$inside" "$(realpath "$2")/bin"
    ;;
  kill-node | start-node)
    (($# == 3)) || usage
    dir=$(realpath "$2")
    if [[ "$action" == kill-node ]]; then
      kill_node "$3"
    else
      start_node "$3"
      wait_until 10 "node $3 is recorded" test -s "$dir/pids/n$3"
    fi
    ;;
  *) usage ;;
esac
