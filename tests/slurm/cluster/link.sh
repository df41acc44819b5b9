# Between outside and a node, in the node's network: a cable to the bridge of the head. Then the node.
set -euo pipefail
dir=$1
n=$2
source "$(dirname "${BASH_SOURCE[0]}")/config.sh"
read -r head started < "$dir/pids/head.inner"
ip -batch - <<BATCH
link set lo up
link add eth0 address $(hardware_address "$n") type veth peer name v$n netns $head
addr add $subnet.$n/24 dev eth0
link set eth0 up
BATCH
nsenter -t "$head" -n ip link set "v$n" master eth0 up
ip -batch "$dir/neighbours"
exec unshare --uts --ipc --mount --pid --fork --kill-child bash "$(dirname "${BASH_SOURCE[0]}")/node.sh" "$@"
