# First process of a node, in its namespaces: when it ends, the kernel kills all others of the node.
set -euo pipefail
dir=$1
n=$2
shared=$3
here=$(dirname "${BASH_SOURCE[0]}")
source "$here/processes.sh"
record_self "n$n"
source "$here/config.sh"
source "$here/limits.sh"
source "$here/mounts.sh"

enter_limits "$n"
take_cores "$n"
hostname "n$n"
private_folders "$shared"
cd /
start_munged
mkdir -p /run/slurmd
slurmd -D -f "$inside/slurm.conf" -N "n$n" &
slurmd=$!
trap 'exit 0' TERM
# A node lives on without its slurmd. Orphans are this shell's children, and it takes their status.
wait $slurmd || true
echo "slurmd has ended"
while :; do sleep 3600 & wait $!; done
