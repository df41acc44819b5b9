# First process of the head, in its namespaces: the bridge, munged, slurmctld.
set -euo pipefail
dir=$1
here=$(dirname "${BASH_SOURCE[0]}")
source "$here/processes.sh"
record_self head.inner
source "$here/config.sh"
source "$here/mounts.sh"

hostname head
private_folders
ip -batch - <<BATCH
link set lo up
link add eth0 address $(hardware_address 254) type bridge forward_delay 0
addr add $subnet.254/24 dev eth0
link set eth0 up
BATCH
ip -batch "$inside/neighbours"

start_munged
slurmctld -D -f "$inside/slurm.conf" &
slurmctld=$!
trap 'kill $slurmctld $munged' TERM
until (: > "/dev/tcp/$subnet.254/6817") 2> /dev/null; do sleep 0.02; done
touch "$inside/ready"
# Orphans of this namespace are this shell's children, and it takes their status.
wait $slurmctld || true
wait $slurmctld $munged || true
